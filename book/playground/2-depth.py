"""Sixty-four blocks

Every sublayer keeps the size of its input. How large is each of three streams after 64 of them? Guess, then run it.
"""

import numpy as np

from subnorm.numpy import layer_norm, post_ln, pre_ln, residual

rng = np.random.default_rng(0)
weights = rng.normal(size=(64, 64, 64)) / 8  # 64 matrices of 64 × 64
streams = {
    "no norm": residual,
    "Pre-LN": lambda x, f: pre_ln(x, f, layer_norm),
    "Post-LN": lambda x, f: post_ln(x, f, layer_norm),
}
start = rng.normal(size=64)
for name, block in streams.items():
    x = start
    for w in weights:
        x = block(x, w.dot)
    print(f"{name:8} {np.sqrt((x**2).mean()):16,.1f}")
