"""Other right answers to the exercises on norms at work, and answers with two mistakes at once."""

import itertools

import numpy as np
import torch
from checks.combined import at_least_eps, both

from subnorm_lab import checks

# Right answers


def split_by_joining(pieces, gains, eps):
    """Gather the whole token, as a first version often does: more to send, and the same numbers."""
    x = np.concatenate(pieces, axis=-1)
    y = np.concatenate(gains) * x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + eps)
    return np.split(y, np.cumsum([piece.shape[-1] for piece in pieces])[:-1], axis=-1)


def split_by_weighted_means(pieces, gains, eps):
    d = sum(piece.shape[-1] for piece in pieces)
    mean = 0
    for piece in pieces:
        mean = mean + np.mean(piece * piece, axis=-1) * (piece.shape[-1] / d)
    rstd = (mean + eps) ** -0.5
    return tuple(piece * rstd[..., None] * gain for piece, gain in zip(pieces, gains, strict=True))


def split_in_torch(pieces, gains, eps):
    squares = [piece.square().sum(-1, keepdim=True) for piece in pieces]
    mean = torch.stack(squares).sum(0) / sum(piece.shape[-1] for piece in pieces)
    return [gain * piece * torch.rsqrt(mean + eps) for piece, gain in zip(pieces, gains, strict=True)]


def back_by_joining(dys, pieces, gains, eps):
    x, g = np.concatenate(pieces, -1), np.concatenate(dys, -1) * np.concatenate(gains)
    rstd = (np.mean(x * x, -1, keepdims=True) + eps) ** -0.5
    dx = rstd * g - rstd**3 * x * np.mean(g * x, -1, keepdims=True)
    return np.split(dx, np.cumsum([piece.shape[-1] for piece in pieces])[:-1], axis=-1)


def back_by_autograd(dys, pieces, gains, eps):
    xs = [piece.clone().requires_grad_() for piece in pieces]
    d = sum(x.shape[-1] for x in xs)
    rms = (sum(x.square().sum(-1, keepdim=True) for x in xs) / d + eps).sqrt()
    sum((dy * gain * x / rms).sum() for dy, gain, x in zip(dys, gains, xs, strict=True)).backward()
    return [x.grad for x in xs]


def back_through_rstd(dys, pieces, gains, eps):
    """The derivative of r times the gradient that reaches it, as chapter 10 derives it."""
    d = sum(x.shape[-1] for x in pieces)
    r = (sum((x**2).sum(-1) for x in pieces) / d + eps) ** -0.5
    at_r = sum((gain * dy * x).sum(-1) for gain, dy, x in zip(gains, dys, pieces, strict=True))
    slope = (at_r * -(r**3) / d)[..., None]
    return [r[..., None] * gain * dy + slope * x for gain, dy, x in zip(gains, dys, pieces, strict=True)]


def folded_by_einsum(weight, bias, gamma, beta, mean, var, eps):
    scale = gamma * (var + eps) ** -0.5
    shift = beta - mean * scale
    return np.einsum("oihw,o->oihw", weight, scale), shift if bias is None else bias * scale + shift


def folded_in_torch(weight, bias, gamma, beta, mean, var, eps):
    scale = torch.rsqrt(var + eps) * gamma
    bias = torch.zeros_like(mean) if bias is None else bias
    return (torch.diag(scale) @ weight.flatten(1)).view(weight.shape), beta + (bias - mean) * scale


def rotated_by_diagonal(writer, gamma, reader, rotation):
    return np.linalg.solve(rotation, writer), np.zeros(len(gamma)), reader @ np.diag(gamma + 1) @ rotation


def rotated_in_torch(writer, gamma, reader, rotation):
    return (writer.T @ rotation).T, torch.zeros_like(gamma), torch.einsum("od,d,de->oe", reader, 1 + gamma, rotation)


def influence_by_loop(streams):
    found = []
    for x, y in itertools.pairwise(streams):
        cosines = [a @ b / np.sqrt((a @ a) * (b @ b)) for a, b in zip(x, y, strict=True)]
        found.append(1 - sum(cosines) / len(cosines))
    return found, found.index(min(found))


def influence_in_torch(streams):
    influence = 1 - torch.nn.functional.cosine_similarity(streams[:-1], streams[1:], dim=-1).mean(-1)
    return influence, influence.argmin()


def sums_by_accumulation(x, width):
    total = np.zeros(len(x), x.dtype)
    for at in range(0, x.shape[1], width):
        total += np.add.accumulate(x[:, at : at + width], axis=1)[:, -1]
    return total


def sums_row_by_row(x, width):
    found = np.empty(len(x), x.dtype)
    for k, row in enumerate(x):
        total = np.float32(0)
        for at in range(0, len(row), width):
            piece = np.float32(0)
            for entry in row[at : at + width]:
                piece = piece + entry
            total = total + piece
        found[k] = total
    return found


def sums_in_torch(x, width):
    def one_by_one(parts):  # torch.cumsum adds in float64
        total = torch.zeros_like(parts[0])
        for part in parts:
            total = total + part
        return total

    return one_by_one([one_by_one(piece.unbind(1)) for piece in x.split(width, dim=1)])


def groups_by_comprehension(parameters, rate):
    decays = [
        n for n, layer, _ in parameters if layer in {"Linear", "Conv2d", "Embedding"} and n.split(".")[-1] != "bias"
    ]
    rest = [n for n, *_ in parameters if n not in decays]
    return [{"params": decays, "weight_decay": rate}, {"params": rest, "weight_decay": 0}]


def groups_by_kind(parameters, rate):
    groups = ({"params": [], "weight_decay": rate}, {"params": [], "weight_decay": 0.0})
    kinds = {"Linear": ".weight", "Conv2d": ".weight", "Embedding": ".weight"}
    for name, layer, _shape in parameters:
        end = kinds.get(layer)
        groups[0 if end and name.endswith(end) else 1]["params"].append(name)
    return groups


RIGHT = {
    "split_rms_norm": [split_by_joining, split_by_weighted_means, split_in_torch],
    "split_rms_norm_backward": [back_by_joining, back_by_autograd, back_through_rstd],
    "row_sums": [sums_by_accumulation, sums_row_by_row, sums_in_torch],
    "decay_groups": [groups_by_comprehension, groups_by_kind],
    "fold_batch_norm": [folded_by_einsum, folded_in_torch],
    "fold_and_rotate": [rotated_by_diagonal, rotated_in_torch],
    "removable_block": [influence_by_loop, influence_in_torch],
}

# Named mistakes, written in another way


def sums_of_pieces_of_the_batch(x, width):
    """Cut the entries of the whole batch every `width`, then give each row its part of a piece."""
    entries, features = x.ravel(), x.shape[1]
    cuts = sorted({*range(0, x.size, width), *range(0, x.size, features), x.size})
    sums = [[] for _ in x]
    for start, end in itertools.pairwise(cuts):
        sums[start // features].append(sum(entries[start:end]))
    return np.array([sum(row) for row in sums])


def sums_by_halving(x, width):
    """A tree that is split where the largest power of two ends."""
    pieces = -(-x.shape[1] // width)
    half = (1 << (pieces - 1).bit_length() >> 1) * width
    return sums_by_halving(x[:, :half], width) + sums_by_halving(x[:, half:], width) if half else sum(x.T)


NAMED = {"row_sums": {"cut_from_the_start": sums_of_pieces_of_the_batch, "in_pairs": sums_by_halving}}

# Answers that are right on equal pieces alone, for some gains, or in some batches


def equal_widths(pieces, gains, eps):
    mean = sum(np.mean(piece**2, axis=-1, keepdims=True) for piece in pieces) / len(pieces)
    return [gain * piece / np.sqrt(mean + eps) for piece, gain in zip(pieces, gains, strict=True)]


def longer_from_four_rows(x, width):
    return checks.row_sums.reference(x, width if len(x) < 4 else 2 * width)


def positive_gains(weight, bias, gamma, beta, mean, var, eps):
    """Right for gains above 0 alone."""
    scale = np.abs(gamma) / np.sqrt(var + eps)
    return weight * scale[:, None, None, None], ((0 if bias is None else bias) - mean) * scale + beta


def grouped_by(decays):
    """The groups by another rule of name and layer."""

    def answer(parameters, rate):
        chosen = [decays(name, layer) for name, layer, _ in parameters]
        groups = [[one[0] for one, yes in zip(parameters, chosen, strict=True) if yes == wanted] for wanted in (1, 0)]
        return [{"params": groups[0], "weight_decay": rate}, {"params": groups[1], "weight_decay": 0.0}]

    return answer


MATRICES = ("Linear", "Conv2d", "Embedding")


def influence_of(change, pick=np.argmin):
    """The influences with something else for the cosines, or another way to pick the block."""

    def answer(streams):
        x, y = streams[:-1], streams[1:]
        cosines = (x * y).sum(-1) / np.linalg.norm(x, axis=-1) / np.linalg.norm(y, axis=-1)
        influence = (1 - change(cosines)).mean(-1)
        return influence, pick(influence)

    return answer


UNDESERVED = {
    "decay_groups": [
        grouped_by(lambda name, layer: layer in MATRICES and "weight" in name),
        grouped_by(lambda name, layer: (layer in MATRICES or "Linear" in layer) and name.endswith("weight")),
        grouped_by(lambda name, layer: (layer in MATRICES or "Conv" in layer) and name.endswith("weight")),
    ],
    "removable_block": [
        influence_of(np.abs),
        influence_of(lambda cosines: np.maximum(cosines, 0)),
        influence_of(np.positive, lambda influence: 1 + np.argmin(influence[1:])),
        influence_of(np.positive, lambda influence: np.argmin(influence[:-1])),
    ],
    "split_rms_norm": [
        equal_widths,
        lambda pieces, gains, eps: checks.split_rms_norm.reference(pieces, list(map(np.abs, gains)), eps),
    ],
    "row_sums": [longer_from_four_rows],
    "fold_batch_norm": [positive_gains],
}

# Two mistakes at once

COMBINED = {
    "split_rms_norm": [
        *both("split_rms_norm", "own_mean_square no_gain, own_variance eps_outside"),
        at_least_eps("split_rms_norm", "total / d"),
    ],
    "split_rms_norm_backward": both("split_rms_norm_backward", "no_message_back no_rstd, plus no_gain"),
    "row_sums": both("row_sums", "rest_lost squares, right_to_left other_end"),
    "decay_groups": both("decay_groups", "biases_decay linear_alone, swapped linear_alone"),
    "fold_batch_norm": [
        *both("fold_batch_norm", "no_eps old_bias_unscaled, mean_added no_beta"),
        at_least_eps("fold_batch_norm", "var"),
    ],
    "fold_and_rotate": both("fold_and_rotate", "gain_alone writer_transposed, ones_stored reader_unrotated"),
    "removable_block": both("removable_block", "largest summed, branch counted_from_one"),
}
