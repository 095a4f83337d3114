"""A nearly constant token

Does LayerNorm give every token standard deviation 1? The features of these tokens lie closer and closer together.
"""

import numpy as np

from subnorm.numpy import layer_norm

noise = np.random.default_rng(0).normal(size=512)

for spread in (1, 0.1, 0.01, 0.001, 0.0001):
    y = layer_norm(5 + spread * noise, eps=1e-5)
    print(f"spread {spread:<7} std after the norm {y.std():.3f}")
