"""The last gradient

A gradient of size 1 arrives at the output. How much of it reaches the last sublayer when the stack gets deeper?
"""

import numpy as np

from subnorm.numpy import layer_norm, layer_norm_backward, pre_ln

rng = np.random.default_rng(0)
weights = rng.normal(size=(64, 64, 64)) / 8
start, dy = rng.normal(size=(2, 64))
dy /= np.linalg.norm(dy)

for depth in (4, 16, 64):
    pre = post = start
    for w in weights[:depth]:
        pre = pre_ln(pre, w.dot, layer_norm)
        total = post + w @ post  # Post-LN: the norm comes after this sum
        post = layer_norm(total)
    # backward through the last norm: in Pre-LN that is the final norm of the stack
    pre, post = (layer_norm_backward(dy, x)[0] for x in (pre, total))
    print(f"{depth:2} blocks: Pre-LN {np.linalg.norm(pre):.2f}, Post-LN {np.linalg.norm(post):.2f}")
