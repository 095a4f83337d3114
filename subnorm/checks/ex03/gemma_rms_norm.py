from functools import partial

import numpy as np

from subnorm.checks.ex03._inputs import half_cases
from subnorm.checks.ex03._sentences import CENTRED, EPS_OUTSIDE, FLOAT16, KEEPDIMS, NO_EPS, SUM, VARIANCE
from subnorm.checks.exercise import exercise


@exercise(
    number=5, level=2, minutes=10, chapter="04-rmsnorm",
    objective="port a norm without changing its gain or its order of casts",
    cases=partial(half_cases, offset=1),
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
        ("float16", "x.astype(np.promote_types(x.dtype, np.float32)) -> x", FLOAT16),
        ("layer_norm", "mean = -> x = x - x.mean(-1, keepdims=True); mean =", CENTRED),
        ("variance", "(x * x).mean( -> x.var(", VARIANCE),
        ("sum", ".mean( -> .sum(", SUM),
        ("eps_outside", "np.sqrt(mean + eps) -> (np.sqrt(mean) + eps)", EPS_OUTSIDE),
        ("no_eps", "+ eps ->", NO_EPS),
        ("keepdims", ", keepdims=True ->", KEEPDIMS),
    ],
)
def gemma_rms_norm(x, gamma, eps):
    dtype, x = x.dtype, x.astype(np.promote_types(x.dtype, np.float32))
    mean = (x * x).mean(-1, keepdims=True)
    xhat = x / np.sqrt(mean + eps)
    gain = 1 + gamma.astype(np.promote_types(gamma.dtype, np.float32))
    return (gain * xhat).astype(dtype)
