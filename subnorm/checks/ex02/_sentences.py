"""Sentences that several exercises share."""

DDOF1 = "your variance is unbiased (divided by d - 1); LayerNorm divides by d."
EPS_OUTSIDE = "eps is added outside the root, sqrt(var) + eps; the definition is sqrt(var + eps)."
FLOAT16 = "float16 overflows in the squares; compute the statistics in float32, and give the result the dtype of x."
NO_EPS = "the given eps is not used; the definition divides by sqrt(var + eps)."
XHAT = "this is xhat: neither gamma nor beta is used."
