import numpy as np

from subnorm_lab.checks import ex03
from subnorm_lab.checks.shared import exercise


@exercise(
    number=5, level=2, minutes=10, chapter="04-rmsnorm",
    objective="port a norm without changing its gain or its order of casts",
    cases=lambda rng: ex03.half_cases(rng, offset=1),
    mistakes=[
        ("gamma_alone", "1 + ->",
         "the result is multiplied by gamma; gamma stores the gain minus 1, so multiply by 1 + gamma.",
         "linkedin/Liger-Kernel/issues/74"),
        ("two_more", "1 + -> 2 +", "1 is added twice; multiply by 1 + gamma.", "Blaizzy/mlx-vlm/pull/2114"),
        ("cast_first", ("gamma.astype(np.promote_types(gamma.dtype, np.float32)) -> gamma",
                        "(gain * xhat) -> gain * xhat"),
         "xhat is cast before the gain, as in Llama's order; here the product is computed in float32 and cast last.",
         "vllm-project/vllm/pull/3653"),
        ("never_cast", ".astype(dtype) ->", "nothing is cast back: the result has the dtype of x."),
        ("no_gamma", "gain * ->", "gamma is not used: multiply by 1 + gamma."),
        ex03.FLOAT16, ex03.CENTRED, ex03.VARIANCE, ex03.SUM, ex03.EPS_OUTSIDE, ex03.NO_EPS, ex03.KEEPDIMS,
    ],
)
def gemma_rms_norm(x, gamma, eps):
    dtype, x = x.dtype, x.astype(np.promote_types(x.dtype, np.float32))
    mean = (x * x).mean(-1, keepdims=True)
    xhat = x / np.sqrt(mean + eps)
    gain = 1 + gamma.astype(np.promote_types(gamma.dtype, np.float32))
    return (gain * xhat).astype(dtype)
