"""One attention head and the remedies for logits that grow: what each bounds, and whether the head still learns.

The head looks up a key: its query is one of the keys plus noise, and it has to return that key's value. At a learning
rate that is too high its logits run away, its weights become one-hot, and the gradient dies. A run takes a second.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from subnorm.torch import rms_norm

D_MODEL, D_HEAD, D_VALUE = 16, 16, 4
KEYS, BATCH_SIZE, NOISE = 16, 32, 0.5

#: What the head does about its logits. :func:`train` knows them all; "sink" and "gate" leave the logits alone.
REMEDIES = ("none", "qk_norm", "sigma_reparam", "soft_cap", "qk_clip", "sink", "gate")

#: The cap of Gemma 2's attention, and the threshold of Kimi K2's QK-Clip.
CAP, THRESHOLD = 50.0, 100.0


def soft_cap(logits: Tensor, cap: float = CAP) -> Tensor:
    """``c tanh(s / c)``: nearly s while it is small, never beyond c. Its slope is ``1 - tanh(s / c)^2``.

    Source: Gemma Team 2024, arXiv:2408.00118, section 2.
    """
    return cap * torch.tanh(logits / cap)


def unit_norm(weight: Tensor) -> Tensor:
    """``W / sigma(W)``, of spectral norm 1, for matrices of shape (..., m, n); sigmaReparam multiplies it by a scalar.

    An exact singular value; the authors' code estimates it by one power iteration in each step.

    Source: Zhai et al. 2023, arXiv:2303.06296; apple/ml-sigma-reparam, vision/layers.py, ``SpectralNormedWeight``.
    """
    return weight / torch.linalg.matrix_norm(weight, 2)[..., None, None]


def clip_factor(largest: Tensor, threshold: float = THRESHOLD) -> Tensor:
    """``sqrt(min(1, tau / S))``: QK-Clip multiplies both W_q and W_k of a head by it, after the optimizer's step.

    Args:
        largest: the head's largest logit in the batch, S.
        threshold: tau.

    Source: Kimi Team 2025, arXiv:2507.20534, section 2.1.
    """
    return (threshold / largest).clamp(max=1).sqrt()


def attention_weights(logits: Tensor, sink: Tensor | None = None) -> Tensor:
    """Softmax over the last axis; with a sink, ``exp(s_j) / (exp(sink) + sum_i exp(s_i))``.

    Args:
        logits: shape (..., keys).
        sink: a number that broadcasts to (..., 1).

    Source: gpt-oss (OpenAI 2025, arXiv:2508.10925), gpt_oss/torch/model.py, ``sdpa``.
    """
    if sink is None:
        return logits.softmax(dim=-1)
    return torch.cat([logits, sink.expand(*logits.shape[:-1], 1)], dim=-1).softmax(dim=-1)[..., :-1]


def head_logits(
    queries: Tensor,
    keys: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    remedy: str = "none",
    gains: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """The logits of one head, ``q k^T / sqrt(d_head)``, with what a remedy does on the way forward.

    Args:
        queries: what the queries are made of, shape (..., n, d_model).
        keys: the same for the keys, shape (..., m, d_model).
        w_q: shape (..., d_model, d_head).
        w_k: likewise.
        remedy: of :data:`REMEDIES`.
        gains: of QK-norm, shape (..., 1, d_head), or of sigmaReparam, (..., 1, 1), for queries and keys; by default 1.

    Returns:
        shape (..., n, m).
    """
    g_q, g_k = gains or (torch.ones(1, dtype=w_q.dtype),) * 2
    if remedy == "sigma_reparam":
        w_q, w_k = g_q * unit_norm(w_q), g_k * unit_norm(w_k)
    q, k = queries @ w_q, keys @ w_k
    if remedy == "qk_norm":
        q, k = g_q * rms_norm(q), g_k * rms_norm(k)
    logits = q @ k.mT / math.sqrt(w_q.shape[-1])
    return soft_cap(logits) if remedy == "soft_cap" else logits


def entropy(weights: Tensor) -> Tensor:
    """``-sum p log p`` over the last axis, in nats."""
    return torch.special.entr(weights).sum(dim=-1)


@dataclass(frozen=True)
class Lookup:
    """The runs of :func:`train`, each array of shape (seeds, steps).

    Attributes:
        loss: mean squared error before every step; a head that returns nothing has 1.
        largest: the largest logit of the batch, as softmax gets it.
        entropy: of the attention weights, the mean over the batch, in nats.
    """

    loss: npt.NDArray[np.float64]
    largest: npt.NDArray[np.float64]
    entropy: npt.NDArray[np.float64]


def train(remedy: str, rate: float, seeds: range, steps: int = 200, threshold: float = THRESHOLD) -> Lookup:
    """Train the head with Adam at a constant rate, for all seeds at once.

    Args:
        remedy: of :data:`REMEDIES`.
        rate: learning rate.
        seeds: of weights and batches; all remedies get the same ones.
        steps: updates.
        threshold: of "qk_clip".

    Raises:
        ValueError: an unknown remedy.
    """
    if remedy not in REMEDIES:
        raise ValueError(f"a remedy must be one of {list(REMEDIES)}; got {remedy!r}.")
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]

    def draw(*shape: int) -> Tensor:
        return torch.stack([torch.randn(*shape, generator=g, dtype=torch.float64) for g in generators])

    w_q, w_k = (draw(D_MODEL, D_HEAD) / math.sqrt(D_MODEL) for _ in range(2))
    w_v = draw(D_VALUE, D_VALUE) / math.sqrt(D_VALUE)
    ones, many = torch.ones(len(seeds), 1, D_HEAD, dtype=torch.float64), (len(seeds), 1, 1)
    gains: tuple[Tensor, Tensor] | None = None
    if remedy == "qk_norm":
        gains = ones.clone(), ones.clone()
    if remedy == "sigma_reparam":  # it starts as the plain head
        gains = torch.linalg.matrix_norm(w_q, 2).view(many), torch.linalg.matrix_norm(w_k, 2).view(many)
    sink = torch.zeros(many, dtype=torch.float64) if remedy == "sink" else None
    w_gate = torch.zeros(len(seeds), D_MODEL, D_VALUE, dtype=torch.float64) if remedy == "gate" else None
    parameters = [w_q, w_k, w_v, *(gains or ()), *(p for p in (sink, w_gate) if p is not None)]
    optimizer = torch.optim.Adam([p.requires_grad_() for p in parameters], lr=rate)
    found: dict[str, list[Tensor]] = {"loss": [], "largest": [], "entropy": []}
    for _ in range(steps):
        keys, values = draw(BATCH_SIZE, KEYS, D_MODEL), draw(BATCH_SIZE, KEYS, D_VALUE)
        # the first key is the one to find: the head does not know places
        query, target = keys[..., :1, :] + NOISE * draw(BATCH_SIZE, 1, D_MODEL), values[..., :1, :]
        scaled = None if gains is None else (gains[0].unsqueeze(1), gains[1].unsqueeze(1))
        logits = head_logits(query, keys, w_q.unsqueeze(1), w_k.unsqueeze(1), remedy, scaled)  # (seeds, B, 1, keys)
        weights = attention_weights(logits, None if sink is None else sink.unsqueeze(1))
        output = weights @ values @ w_v.unsqueeze(1)
        if w_gate is not None:
            output = 2 * torch.sigmoid(query @ w_gate.unsqueeze(1)) * output
        loss = F.mse_loss(output, target, reduction="none").mean(dim=(1, 2, 3))  # (seeds,)
        optimizer.zero_grad()
        loss.sum().backward()
        optimizer.step()
        largest = logits.detach().amax(dim=(1, 2, 3))
        if remedy == "qk_clip":
            factor = clip_factor(largest, threshold).view(many)
            with torch.no_grad():
                w_q.mul_(factor)
                w_k.mul_(factor)
        measured = loss.detach(), largest, entropy(weights.detach()).mean(dim=(1, 2))
        for name, value in zip(found, measured, strict=True):
            found[name].append(value)
    return Lookup(**{name: torch.stack(rows, dim=1).numpy() for name, rows in found.items()})
