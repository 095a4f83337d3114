import numpy as np

from subnorm_lab.checks import ex03
from subnorm_lab.checks.shared import NO_GAMMA, exercise


@exercise(
    number=4, level=2, minutes=10, chapter="04-rmsnorm",
    objective="say where a half-precision RMSNorm widens and where it narrows",
    cases=lambda rng: ex03.half_cases(rng, offset=0),
    mistakes=[
        ("cast_last", "gamma * xhat -> (gamma * xhat)",
         "the gain is applied in float32, and the cast comes last; in this order xhat is cast to the dtype of x "
         "before the gain.", "vllm-project/vllm/issues/42325"),
        ("never_cast", ".astype(dtype) ->",
         "the result is float32 where x and gamma are float16: cast xhat to the dtype of x before the gain, "
         "and leave gamma as it is."),
        ("cast_twice", "gamma * xhat.astype(dtype) -> (gamma * xhat.astype(dtype)).astype(dtype)",
         "the product is cast to the dtype of x once more; in this order only xhat is cast, and float32 gains give "
         "a float32 result."),
        ("one_more", *ex03.ONE_PLUS_GAMMA[1:], "utensils/mold/pull/1078"),
        (*ex03.FLOAT16, "jingyaogong/minimind/issues/301"),
        (*ex03.CENTRED, "mit-han-lab/omniserve/issues/32"),
        (*ex03.VARIANCE, "keras-team/keras/issues/21234"),
        ex03.SUM, ex03.EPS_OUTSIDE, ex03.NO_EPS, ex03.AXIS_0, ex03.KEEPDIMS, NO_GAMMA,
    ],
)
def llama_rms_norm(x, gamma, eps):
    dtype, x = x.dtype, x.astype(np.promote_types(x.dtype, np.float32))
    mean = (x * x).mean(-1, keepdims=True)
    xhat = x / np.sqrt(mean + eps)
    return gamma * xhat.astype(dtype)
