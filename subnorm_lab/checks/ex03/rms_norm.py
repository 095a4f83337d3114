import numpy as np

from subnorm_lab.checks import ex03
from subnorm_lab.checks.shared import FIXED_EPS, NO_GAMMA, exercise


@exercise(
    number=1, level=1, minutes=10, chapter="04-rmsnorm",
    objective="write RMSNorm from its formula, in NumPy",
    cases=ex03.norm_cases(arrays=1),
    facts=[
        ("y / gamma has mean square s / (s + eps) in every row, where s is the mean square of x", ex03.has_its_size),
        ("each row of y / gamma is the row of x times one number",
         lambda y, x, gamma, eps: np.ptp(y / gamma / x, axis=-1).max() < 1e-6 * np.abs(y / gamma / x).max()),
    ],
    mistakes=[
        (*ex03.CENTRED, "ggml-org/llama.cpp/issues/173"),
        (*ex03.VARIANCE, "huggingface/pytorch-image-models/issues/2380"),
        ex03.SUM,
        ("d_upside_down", "np.sqrt(mean + eps) -> (np.sqrt(mean) * x.shape[-1])",
         "x divided by its length is then divided by sqrt(d); the length is sqrt(d) times the root mean square, so "
         "multiply by sqrt(d).", "kyegomez/zeta/issues/180"),
        ("sizes", "(x * x).mean(-1, keepdims=True) -> np.abs(x).mean(-1, keepdims=True) ** 2",
         "you take the mean of |x|; RMSNorm takes the mean of x², then the root."),
        ex03.AXIS_0,
        ("sequence", "-1 -> tuple(range(x.ndim))[-2:]",
         "a whole sequence shares one mean square; each token has its own, over axis -1.",
         "bkitano/llama-from-scratch/issues/4"),
        ("all_axes", "-1 -> None", "the whole array shares one mean square; each token has its own, over axis -1."),
        ("half_row", "(x * x).mean( -> (x * x)[..., : x.shape[-1] // 2].mean(",
         "the mean square is that of the first half of the features, as if another device had the rest; it is the mean "
         "over all d."),
        ex03.KEEPDIMS,
        (*ex03.EPS_OUTSIDE, "allenai/OLMo/issues/281"),
        ex03.NO_EPS,
        ("fixed_eps", "+ eps -> + 1e-6",
         "eps is always 1e-6; use the eps that the function is given.", "apache/tvm/pull/15856"),
        ("fixed_eps_1e_5", *FIXED_EPS[1:]),
        ex03.ONE_PLUS_GAMMA,
        ("eps_in_sum", "+ eps -> + eps / x.shape[-1]",
         "eps is added to the sum of the squares; it belongs to their mean, where it counts d times as much.",
         "patrick-kidger/equinox/pull/545"),
        ex03.NO_ROOT,
        ("two_roots", "(mean + eps) -> (np.sqrt(mean) + eps)",
         "the root is taken twice, sqrt(rms + eps); the definition has one, sqrt(mean(x²) + eps).",
         "pytorch/pytorch/issues/139274"),
        ("multiplied", "x / -> x *",
         "x is multiplied by the root, or divided by its reciprocal (rsqrt); RMSNorm divides x by the root.",
         "mosaicml/llm-foundry/issues/371"),
        NO_GAMMA,
        ("writes_to_input", ("np.float32)) -> np.float32), copy=False)", "xhat = x / -> xhat = x; xhat /="),
         "an input itself is changed (an operator such as /= writes into it), and other code that reads it gets the "
         "changed one: make a new array.", "GeeeekExplorer/nano-vllm/issues/170"),
        ("float16", "x.astype(np.promote_types(x.dtype, np.float32)) -> x",
         "float16 overflows in the squares: square in float32. The result has the dtype of x.",
         "pytorch/pytorch/pull/133085"),
    ],
)
def rms_norm(x, gamma, eps):
    dtype, x = x.dtype, x.astype(np.promote_types(x.dtype, np.float32))
    mean = (x * x).mean(-1, keepdims=True)
    xhat = x / np.sqrt(mean + eps)
    return (gamma * xhat).astype(dtype)
