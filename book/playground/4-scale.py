"""A thousand times larger

The norm removes the size of its input, so the output stays the same. What about the gradient?
"""

import numpy as np

from subnorm.numpy import rms_norm, rms_norm_backward

rng = np.random.default_rng(0)
x, dy = rng.normal(size=(2, 64))

for scale in (1, 10, 100, 1000):
    y = rms_norm(scale * x)
    dx, _ = rms_norm_backward(dy, scale * x)
    print(f"x × {scale:4}: y {y[:2].round(2)}, |dx| {np.linalg.norm(dx):.4f}")
