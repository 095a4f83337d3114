"""Other right answers to the exercises on norms at work, and answers with two mistakes at once."""

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


RIGHT = {
    "split_rms_norm": [split_by_joining, split_by_weighted_means, split_in_torch],
    "gain_gradients": [gains_of_all_tokens, gains_by_autograd],
    "split_rms_norm_backward": [back_by_joining, back_by_autograd, back_through_rstd],
}

# Answers that are right on equal pieces alone


def equal_widths(pieces, gains, eps):
    mean = sum(np.mean(piece**2, axis=-1, keepdims=True) for piece in pieces) / len(pieces)
    return [gain * piece / np.sqrt(mean + eps) for piece, gain in zip(pieces, gains, strict=True)]


def equal_tokens(dys, xs, eps):
    own = [np.mean(dy * x / np.sqrt((x**2).mean(-1, keepdims=True) + eps), 0) for dy, x in zip(dys, xs, strict=True)]
    return [sum(own) * len(xs[0]) for _ in xs]


UNDESERVED = {"split_rms_norm": [equal_widths], "gain_gradients": [equal_tokens]}

# Two mistakes at once

COMBINED = {
    "split_rms_norm": both("split_rms_norm", "own_mean_square no_gain, own_variance eps_outside"),
    "gain_gradients": both("gain_gradients", "averaged mean_over_tokens, not_summed shift"),
    "split_rms_norm_backward": both("split_rms_norm_backward", "no_message_back no_rstd, plus no_gain"),
}
