"""The exercises on LayerNorm, and what several of them share."""

from subnorm_lab.checks.shared import Row

# Mistakes of an answer whose statistics are called x and var.
DDOF1: Row = ("ddof1", "x.var(-1, -> x.var(-1, ddof=1,",
    "your variance is unbiased (divided by d - 1); LayerNorm divides by d.")
EPS_OUTSIDE: Row = ("eps_outside", "np.sqrt(var + eps) -> (np.sqrt(var) + eps)",
    "eps is added outside the root, sqrt(var) + eps; the definition is sqrt(var + eps).")
FLOAT16: Row = ("float16", "x.astype(np.promote_types(x.dtype, np.float32)) -> x",
    "float16 overflows in the squares; compute the statistics in float32, and give the result the dtype of x.")
NO_EPS: Row = ("no_eps", "var + eps -> var", "the given eps is not used; the definition divides by sqrt(var + eps).")
XHAT = "this is xhat: neither gamma nor beta is used."
