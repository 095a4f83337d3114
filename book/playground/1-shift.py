"""Add 100 to a token

The two tokens differ by a constant only. Which norm can tell them apart?
"""

import numpy as np

from subnorm.numpy import layer_norm, rms_norm

x = np.random.default_rng(0).normal(size=5)

for norm in (layer_norm, rms_norm):
    print(norm.__name__)
    print("x      ", norm(x).round(2))
    print("x + 100", norm(x + 100).round(2))
