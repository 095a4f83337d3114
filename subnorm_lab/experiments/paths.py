"""The 2^L paths through a residual stack: at every block the gradient goes through the branch or past it.

Expanding ``(I + J_L) ... (I + J_2) (I + J_1)`` gives one product for each subset of the J's, in order.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from subnorm_lab.experiments.signal import weights

Array = npt.NDArray[np.float64]


def branch_jacobians(
    init: str, depth: int, scale: float = 1.0, d: int = 32, seeds: Sequence[int] = range(8)
) -> tuple[Array, Array]:
    """The Jacobian of every branch ``F(x) = s W relu(x)`` in a residual stack, at one random input for each seed.

    Args:
        init: "he", "xavier" or "torch", as in :mod:`subnorm_lab.experiments.signal`.
        depth: number of blocks L.
        scale: s, the factor on every W.
        d: number of features.
        seeds: one stack for each.

    Returns:
        jacobians, shape (depth, seeds, d, d), first block first; and the inputs x_0, shape (seeds, d).

    Raises:
        ValueError: an unknown init, or a size that is not a positive whole number.

    Source: the chain rule, ``J = s W diag(x > 0)``.
    """
    matrices = scale * weights(init, depth, d, seeds).numpy()  # (L, seeds, d, d)
    source = torch.Generator().manual_seed(0)
    start = torch.randn(len(seeds), d, generator=source, dtype=torch.float64).numpy()  # (seeds, d)
    x, jacobians = start, []
    for w in matrices:
        jacobians.append(w * (x > 0)[:, None, :])  # (seeds, d, d)
        x = x + np.einsum("sij,sj->si", w, np.maximum(x, 0))
    return np.stack(jacobians), start


def enumerate_paths(jacobians: Array) -> tuple[npt.NDArray[np.int64], Array]:
    """List every path: how many branches it goes through, and the product of their Jacobians.

    Args:
        jacobians: shape (L, ..., d, d), first block first. All 2^L products are stored, so keep L small.

    Returns:
        lengths, shape (2^L,), and products, shape (2^L, ..., d, d). The products sum to the Jacobian of the stack.

    Source: Veit, Wilber, Belongie 2016, arXiv:1605.06431, section 3.
    """
    lengths = np.zeros(1, dtype=np.int64)
    products = np.broadcast_to(np.eye(jacobians.shape[-1]), (1, *jacobians.shape[1:]))  # the path past every branch
    for j in jacobians:
        lengths = np.concatenate([lengths, lengths + 1])
        products = np.concatenate([products, j @ products])
    return lengths, products


def sum_by_length(jacobians: Array) -> Array:
    """Sum the paths of each length without listing them, which works for deep stacks too.

    Args:
        jacobians: shape (L, ..., d, d), first block first.

    Returns:
        shape (L + 1, ..., d, d); entry k is the sum over the paths through k branches.
    """
    sums = np.zeros((len(jacobians) + 1, *jacobians.shape[1:]))
    sums[0] = np.eye(jacobians.shape[-1])
    for j in jacobians:
        sums[1:] = sums[1:] + j @ sums[:-1]  # a path of length k goes past j, or is one of length k - 1 and then j
    return sums


def binomial(depth: int, gain: float) -> Array:
    """The expected share of each path length if paths have independent weights and every branch has gain g.

    ``C(L, k) g^k / (1 + g)^L``: the binomial distribution with L draws of probability ``g / (1 + g)``.

    Returns:
        shape (depth + 1,), sums to 1.
    """
    return np.array([math.comb(depth, k) * gain**k / (1 + gain) ** depth for k in range(depth + 1)])
