"""The exercises on residual connections: other right answers, and answers with two mistakes at once."""

import itertools
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


def residual_into_zeros(x, sublayer):
    y = np.zeros_like(x)
    for part in (x, sublayer(x)):
        y += part
    return y


def stream_accumulated(x, sublayers):
    return list(itertools.accumulate(sublayers, lambda state, sublayer: state + sublayer(state), initial=x))


def stream_in_one_array(x, sublayers):
    states = np.empty((len(sublayers) + 1, *x.shape))
    states[0] = x
    for k, sublayer in enumerate(sublayers):
        states[k + 1] = states[k] + sublayer(states[k])
    return [*states]


def projected_by_einsum(x, sublayer, weight):
    skip = x if weight is None else np.einsum("...i,io->...o", x, weight)
    return np.add(sublayer(x), skip)


def scaled_recursively(x, sublayers, n=None):
    if not sublayers:
        return x
    n = n or len(sublayers)
    return scaled_recursively(x + sublayers[0](x) / math.sqrt(n), sublayers[1:], n)


def scaled_into_a_copy(x, sublayers):
    y = x.copy()
    for sublayer in sublayers:
        y += len(sublayers) ** -0.5 * sublayer(y)
    return y


def paths_by_halves(x, weights):
    """The paths past the last block, then those through it."""
    if not weights:
        return x[None]
    first = paths_by_halves(x, weights[:-1])
    return np.concatenate([first, first @ weights[-1]])


RIGHT = {
    "residual": [
        sn.residual,
        lambda x, sublayer: torch.add(sublayer(x), x),
        residual_copied,
        residual_into_zeros,
        lambda x, f: np.sum([f(x), x], axis=0),
    ],
    "stream": [stream_torch, stream_torch_alone, stream_from_edits, stream_accumulated, stream_in_one_array],
    "projected_residual": [
        projected_torch,
        lambda x, sublayer, weight: sublayer(x) + (x if weight is None else torch.matmul(x, weight)),
        projected_identity,
        projected_by_einsum,
    ],
    "scaled_stream": [scaled_torch, scaled_in_dtype, scaled_recursively, scaled_into_a_copy],
    "residual_backward": [backward_autograd, backward_by_jacobian, backward_in_place],
    "paths": [paths_torch, paths_by_bits, paths_by_halves],
    "logit_shares": [shares_torch, shares_centred_readout],
}


# Answers that do what no caller may see


def residual_on_the_branch(x, sublayer):
    y = sublayer(x)
    y += x
    return y


def stream_on_the_branch(x, sublayers):
    states = [x]
    for sublayer in sublayers:
        states.append(residual_on_the_branch(states[-1], sublayer))
    return states


def stream_that_empties_its_list(x, sublayers):
    states = [x]
    while sublayers:
        states.append(states[-1] + sublayers.pop(0)(states[-1]))
    return states


def scaled_on_the_branch(x, sublayers):
    for sublayer in sublayers:
        branch = sublayer(x)
        branch /= np.sqrt(len(sublayers)).astype(x.dtype)
        x = x + branch
    return x


def projected_for_batches(x, sublayer, weight):
    rows, _features = x.shape[-2:]  # one token has no rows
    return sublayer(x) + (x if weight is None else x @ weight) if rows else x


UNDESERVED = {
    "residual": [residual_on_the_branch, lambda x, f: np.squeeze(x + f(x))],
    "stream": [stream_on_the_branch, stream_that_empties_its_list],
    "scaled_stream": [scaled_on_the_branch],
    "projected_residual": [projected_for_batches],
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
    "stream": both("stream", "no_first no_last, reads_first no_first, backwards skips_from_first"),
    "projected_residual": [
        *both("projected_residual", "none_is_no_skip sum_projected, none_is_no_skip transposed"),
        lambda x, f, w: x + f(x) if w is None else relu(x @ w) + x @ w + f(x),
    ],
    "scaled_stream": [
        Edited(checks.scaled_stream.reference, "x + factor -> factor * x + 1 / n"),
        Edited(checks.scaled_stream.reference, "x + factor * -> 2**-0.5 * x +"),
        Edited(checks.scaled_stream.reference, "x + ->"),
    ],
    "residual_backward": both(
        "residual_backward", "no_mask no_transpose, no_identity no_transpose, no_mask one_for_dy"
    ),
    "paths": both(
        "paths",
        "transposed complement, transposed bits_reversed last_block_first, "
        "no_straight_path bits_reversed last_block_first",
    ),
    "logit_shares": both("logit_shares", "ddof1 no_centre, ddof1 no_input_share, no_centre no_input_share"),
}
