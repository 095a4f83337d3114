"""The exercises on residual connections: other right answers, and answers with two mistakes at once."""

import math

import numpy as np
import torch
from checks.combined import both
from torch.nn import functional as F

from subnorm import numpy as sn
from subnorm_lab import checks
from subnorm_lab.checks.edited import Edited


def torch_only(*arrays):
    """Like PyTorch's own functions, these answers accept only tensors."""
    if not all(isinstance(array, torch.Tensor) for array in arrays if array is not None):
        raise TypeError("expected Tensors")


# Right answers


def residual_torch(x, sublayer):
    return torch.add(sublayer(x), x)


def residual_copied(x, sublayer):
    y = x.copy()
    y += sublayer(x)
    return y


def stream_torch(x, sublayers):
    torch_only(x)
    states = (x,)
    for sublayer in sublayers:
        x = x + sublayer(x)
        states = (*states, x)
    return states


def stream_from_edits(x, sublayers):
    edits = [x]
    for sublayer in sublayers:
        edits.append(sublayer(sum(edits)))
    return list(np.cumsum(edits, axis=0))


def projected_torch(x, sublayer, weight):
    torch_only(x)
    return sublayer(x) + (x if weight is None else F.linear(x, weight.T))


def projected_identity(x, sublayer, weight=None):
    return sublayer(x) + np.matmul(x, np.eye(x.shape[-1]) if weight is None else weight)


def scaled_torch(x, sublayers):
    for sublayer in sublayers:
        x = torch.add(x, sublayer(x), alpha=1 / math.sqrt(len(sublayers)))
    return x


def scaled_in_dtype(x, sublayers):
    root = np.sqrt(len(sublayers)).astype(x.dtype)
    for sublayer in sublayers:
        x = x + sublayer(x) / root
    return x


def backward_autograd(dy, x, weight):
    x = x.clone().requires_grad_()
    y = x + torch.relu(x) @ weight
    return torch.autograd.grad(y, x, dy)[0]


def backward_by_jacobian(dy, x, weight):
    jacobian = np.where(x > 0, 1.0, 0.0)[..., None] * weight  # (..., d, d), of the branch
    return ((np.eye(x.shape[-1]) + jacobian) @ dy[..., None])[..., 0]


def backward_in_place(dy, x, weight):
    through = dy @ weight.T
    through[x <= 0] = 0
    through += dy
    return through


def paths_torch(x, weights):
    torch_only(x)
    terms = x[None]
    for weight in weights:
        terms = torch.cat([terms, terms @ weight])
    return terms


def paths_by_bits(x, weights):
    terms = []
    for index in range(2 ** len(weights)):
        product = np.eye(x.shape[-1])
        for bit, weight in zip(reversed(f"{index:0{len(weights)}b}"), weights, strict=True):
            product = product @ (weight if bit == "1" else np.eye(len(weight)))
        terms.append(x @ product)
    return np.array(terms)


def shares_torch(x, sublayers, readout, eps):
    torch_only(x, readout)
    edits = [x]
    for sublayer in sublayers:
        edits.append(sublayer(sum(edits)))
    edits = torch.stack(edits)
    rstd = (sum(edits).var(-1, correction=0, keepdim=True) + eps).rsqrt()
    return (edits - edits.mean(-1, keepdim=True)) * rstd @ readout


def shares_centred_readout(x, sublayers, readout, eps):
    """Centring is linear: it may be done to the readout."""
    d = x.shape[-1]
    centred = (np.eye(d) - np.ones((d, d)) / d) @ readout
    edits, end = [x], x
    for sublayer in sublayers:
        edits.append(sublayer(end))
        end = end + edits[-1]
    mean = end.mean(-1, keepdims=True)
    return np.array(edits) @ centred / np.sqrt(((end - mean) ** 2).mean(-1, keepdims=True) + eps)


def stream_torch_alone(x, sublayers):
    """Works only for tensors, but passes an array through if the list is empty."""
    states = [x]
    for sublayer in sublayers:
        states.append(torch.add(states[-1], sublayer(states[-1])))
    return states


def projected_torch_alone(x, sublayer, weight):
    return sublayer(x) + (x if weight is None else torch.matmul(x, weight))


RIGHT = {
    "residual": [sn.residual, residual_torch, residual_copied, lambda x, f: np.sum([f(x), x], axis=0)],
    "stream": [stream_torch, stream_torch_alone, stream_from_edits],
    "projected_residual": [projected_torch, projected_torch_alone, projected_identity],
    "scaled_stream": [scaled_torch, scaled_in_dtype],
    "residual_backward": [backward_autograd, backward_by_jacobian, backward_in_place],
    "paths": [paths_torch, paths_by_bits],
    "logit_shares": [shares_torch, shares_centred_readout],
}


# Two mistakes at once


def normed(x):
    return (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)


def relu(x):
    return np.maximum(x, 0)


COMBINED = {
    "residual": [
        lambda x, f: relu(normed(x) + f(normed(x))),
        lambda x, f: x + x + f(normed(x)),
        lambda x, f: normed(f(x)),
    ],
    "stream": [
        both("stream", "no_first", "no_last"),
        both("stream", "reads_first", "no_first"),
        both("stream", "backwards", "skips_from_first"),
    ],
    "projected_residual": [
        both("projected_residual", "none_is_no_skip", "sum_projected"),
        both("projected_residual", "none_is_no_skip", "transposed"),
        lambda x, f, w: x + f(x) if w is None else relu(x @ w) + x @ w + f(x),
    ],
    "scaled_stream": [
        Edited(checks.scaled_stream.reference, "x + factor -> factor * x + 1 / n"),
        Edited(checks.scaled_stream.reference, "x + factor * -> 2**-0.5 * x +"),
        Edited(checks.scaled_stream.reference, "x + ->"),
    ],
    "residual_backward": [
        both("residual_backward", "no_mask", "no_transpose"),
        both("residual_backward", "no_identity", "no_transpose"),
        both("residual_backward", "no_mask", "one_for_dy"),
    ],
    "paths": [
        both("paths", "transposed", "complement"),
        both("paths", "transposed", "bits_reversed", "last_block_first"),
        both("paths", "no_straight_path", "bits_reversed", "last_block_first"),
    ],
    "logit_shares": [
        both("logit_shares", "ddof1", "no_centre"),
        both("logit_shares", "ddof1", "no_input_share"),
        both("logit_shares", "no_centre", "no_input_share"),
    ],
}
