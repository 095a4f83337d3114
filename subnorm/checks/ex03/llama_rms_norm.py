from functools import partial

import numpy as np

from subnorm.checks.ex03._inputs import half_cases
from subnorm.checks.ex03._sentences import AXIS_0, CENTRED, EPS_OUTSIDE, FLOAT16, GEMMA, KEEPDIMS, NO_EPS, SUM, VARIANCE
from subnorm.checks.exercise import exercise
from subnorm.checks.shared import NO_GAMMA


@exercise(
    number=4, level=2, minutes=10, chapter="04-rmsnorm",
    objective="say where a half-precision RMSNorm widens and where it narrows",
    cases=partial(half_cases, offset=0),
    mistakes=[
        ("cast_last", "gamma * xhat -> (gamma * xhat)",
         "the gain is applied in float32, and the cast comes last; in this order xhat is cast to the dtype of x "
         "before the gain.", "vllm-project/vllm/issues/42325"),
        ("never_cast", ".astype(dtype) ->",
         "the result is float32 where x and gamma are float16: cast xhat to the dtype of x before the gain, "
         "and leave gamma as it is."),
        ("cast_twice", "gamma * xhat.astype(dtype) -> (gamma * xhat.astype(dtype)).astype(dtype)",
         "the product is cast to the dtype of x once more; in this order only xhat is cast, and float32 gains give "
         "a float32 result.", "huggingface/transformers/issues/30236"),
        ("one_more", "gamma * -> (1 + gamma) *", GEMMA, "utensils/mold/pull/1078"),
        ("float16", "x.astype(np.promote_types(x.dtype, np.float32)) -> x",
         FLOAT16, "jingyaogong/minimind/issues/301"),
        ("layer_norm", "mean = -> x = x - x.mean(-1, keepdims=True); mean =",
         CENTRED, "mit-han-lab/omniserve/issues/32"),
        ("variance", "(x * x).mean( -> x.var(", VARIANCE, "keras-team/keras/issues/21234"),
        ("sum", ".mean( -> .sum(", SUM),
        ("eps_outside", "np.sqrt(mean + eps) -> (np.sqrt(mean) + eps)", EPS_OUTSIDE),
        ("no_eps", "+ eps ->", NO_EPS),
        ("axis0", "-1 -> 0", AXIS_0),
        ("keepdims", ", keepdims=True ->", KEEPDIMS),
        ("no_gamma", "gamma * ->", NO_GAMMA),
    ],
)
def llama_rms_norm(x, gamma, eps):
    dtype, x = x.dtype, x.astype(np.promote_types(x.dtype, np.float32))
    mean = (x * x).mean(-1, keepdims=True)
    xhat = x / np.sqrt(mean + eps)
    return gamma * xhat.astype(dtype)
