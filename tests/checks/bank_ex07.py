"""Other right answers to the exercises on norms at work, and answers with two mistakes at once."""

import itertools

import numpy as np
import torch
from checks.combined import both

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


def gains_of_all_tokens(dys, xs, eps):
    dy, x = np.concatenate(dys), np.concatenate(xs)
    gradient = np.einsum("td,td->d", dy, x / np.sqrt((x**2).mean(-1, keepdims=True) + eps))
    return [gradient] * len(xs)


def gains_by_autograd(dys, xs, eps):
    gamma = torch.ones(xs[0].shape[-1], dtype=xs[0].dtype, requires_grad=True)
    for dy, x in zip(dys, xs, strict=True):
        y = gamma * x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt()
        (y * dy).sum().backward()  # adds to what is there
    return [gamma.grad.clone() for _ in xs]


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


def capped_by_exponentials(scores, dy, cap):
    e = np.exp(2 * scores / cap)
    return cap * (e - 1) / (e + 1), dy * 4 * e / (e + 1) ** 2


def capped_by_autograd(scores, dy, cap):
    scores = scores.clone().requires_grad_()
    y = cap * torch.tanh(scores / cap)
    (y * dy).sum().backward()
    return y, scores.grad


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


RIGHT = {
    "split_rms_norm": [split_by_joining, split_by_weighted_means, split_in_torch],
    "gain_gradients": [gains_of_all_tokens, gains_by_autograd],
    "split_rms_norm_backward": [back_by_joining, back_by_autograd, back_through_rstd],
    "soft_cap": [capped_by_exponentials, capped_by_autograd],
    "fold_batch_norm": [folded_by_einsum, folded_in_torch],
    "fold_and_rotate": [rotated_by_diagonal, rotated_in_torch],
    "removable_block": [influence_by_loop, influence_in_torch],
}

# Answers that are right on equal pieces alone, or for some gains


def equal_widths(pieces, gains, eps):
    mean = sum(np.mean(piece**2, axis=-1, keepdims=True) for piece in pieces) / len(pieces)
    return [gain * piece / np.sqrt(mean + eps) for piece, gain in zip(pieces, gains, strict=True)]


def equal_tokens(dys, xs, eps):
    own = [np.mean(dy * x / np.sqrt((x**2).mean(-1, keepdims=True) + eps), 0) for dy, x in zip(dys, xs, strict=True)]
    return [sum(own) * len(xs[0]) for _ in xs]


def positive_gains(weight, bias, gamma, beta, mean, var, eps):
    """Right for gains above 0 alone."""
    scale = np.abs(gamma) / np.sqrt(var + eps)
    return weight * scale[:, None, None, None], ((0 if bias is None else bias) - mean) * scale + beta


UNDESERVED = {
    "split_rms_norm": [equal_widths],
    "gain_gradients": [equal_tokens],
    "fold_batch_norm": [positive_gains],
}

# Two mistakes at once

COMBINED = {
    "split_rms_norm": both("split_rms_norm", "own_mean_square no_gain, own_variance eps_outside"),
    "gain_gradients": both("gain_gradients", "averaged mean_over_tokens, not_summed shift"),
    "split_rms_norm_backward": both("split_rms_norm_backward", "no_message_back no_rstd, plus no_gain"),
    "soft_cap": both("soft_cap", "score_for_cap no_dy, multiplied cap_in_slope"),
    "fold_batch_norm": both("fold_batch_norm", "no_eps old_bias_unscaled, mean_added no_beta"),
    "fold_and_rotate": both("fold_and_rotate", "gain_alone writer_transposed, ones_stored reader_unrotated"),
    "removable_block": both("removable_block", "largest summed, branch counted_from_one"),
}
