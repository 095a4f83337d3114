"""Other right answers to the exercises on RMSNorm, and answers with two mistakes at once."""

import numpy as np
import torch
import torch.nn.functional as F
from checks.combined import at_least_eps, both

from subnorm import numpy as sn
from subnorm_lab import checks

# rms_norm


def rms_by_length(x, gamma, eps):
    wide = x.astype(np.float64)
    length = np.linalg.norm(wide, axis=-1, keepdims=True)
    return (np.sqrt(x.shape[-1]) * wide / np.sqrt(length**2 + x.shape[-1] * eps) * gamma).astype(x.dtype)


def rms_by_einsum(x, gamma, eps):
    wide = x.astype(np.promote_types(x.dtype, np.float32))
    return np.einsum(
        "d,...d,...->...d", gamma, wide, (np.einsum("...d,...d->...", wide, wide) / x.shape[-1] + eps) ** -0.5
    ).astype(x.dtype)


def rms_in_torch(x, gamma, eps):
    wide = x.float() if x.dtype == torch.float16 else x
    return (gamma * wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype)


def rms_built_in(x, gamma, eps):
    return F.rms_norm(x, x.shape[-1:], gamma.to(x.dtype), eps=eps)


# layer_norm_from_rms


def composed_of_flat_rows(x, norm, gamma, beta):
    flat = x.reshape(-1, x.shape[-1])
    centred = flat - np.einsum("nd->n", flat)[:, None] / flat.shape[1]
    return norm(centred).reshape(x.shape) * gamma + beta


def composed_by_matrix(x, norm, gamma, beta):
    d = x.shape[-1]
    return beta + norm(x @ (np.eye(d) - 1 / d)) * gamma


# add_rms_norm


def added_in_float64(x, branch, gamma, eps):
    stream = (x.astype(np.float64) + branch).astype(x.dtype)
    return rms_by_length(stream, gamma, eps), stream


def added_in_torch(x, branch, gamma, eps):
    stream = torch.add(x, branch)
    return [rms_in_torch(stream, gamma, eps), stream]


# Llama's order and Gemma's


def llama_in_torch(x, gamma, eps):
    wide = x.float()
    return gamma * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype)


def gemma_spread_out(x, gamma, eps):
    wide, gain = x.astype(np.float64), gamma.astype(np.float64)
    xhat = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + eps)
    return (xhat + gain * xhat).astype(x.dtype)


def gemma_in_torch(x, gamma, eps):
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps) * (1.0 + gamma.float())).type_as(x)


# centre_writer


def centred_by_matrix(weight, bias):
    d = len(bias)
    centre = np.eye(d) - np.ones((d, d)) / d
    return weight @ centre, centre @ bias


# rms_norm_backward


def backward_by_jacobian(dy, x, gamma, eps):
    d = x.shape[-1]
    flat, flat_dy = x.reshape(-1, d), dy.reshape(-1, d)
    dx, dgamma = np.empty_like(flat), np.zeros(d)
    for k, (row, g) in enumerate(zip(flat, flat_dy, strict=True)):
        r = ((row @ row) / d + eps) ** -0.5
        jacobian = r * np.eye(d) - r**3 * np.outer(row, row) / d
        dx[k] = jacobian @ (gamma * g)
        dgamma += g * row * r
    return dx.reshape(x.shape), dgamma


def backward_by_autograd(dy, x, gamma, eps):
    x, gamma = x.requires_grad_(), gamma.requires_grad_()
    y = gamma * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    return torch.autograd.grad(y, (x, gamma), dy)


# safe_rms_norm


def safe_by_hypot(x, gamma, eps):
    rms = np.hypot.reduce(x, axis=-1, keepdims=True) / np.sqrt(x.shape[-1])
    return gamma * (x / np.hypot(rms, np.sqrt(eps)))


def safe_by_power_of_two(x, gamma, eps):
    _, power = np.frexp(np.abs(x).max(-1, keepdims=True))
    power = np.maximum(power, 0)
    u = np.ldexp(x, -power)
    return gamma * u / np.sqrt(np.mean(u**2, -1, keepdims=True) + np.ldexp(eps, -2 * power))


def safe_in_torch(x, gamma, eps):
    m = x.abs().amax(-1, keepdim=True).clamp(min=1)
    u = x / m
    return gamma * u * torch.rsqrt(u.square().mean(-1, keepdim=True) + eps / m / m)


# In PyTorch, for input of any dtype, with the casts where the Transformers library has them. After Apache-2.0 code:
# https://github.com/huggingface/transformers/blob/main/src/transformers/models/llama/modeling_llama.py
# https://github.com/huggingface/transformers/blob/main/src/transformers/models/gemma/modeling_gemma.py
# https://github.com/huggingface/transformers/pull/29402 says why the two orders differ


def as_llama_does(x, gamma, eps):
    input_dtype = x.dtype
    x = x.to(torch.float32)
    variance = x.pow(2).mean(-1, keepdim=True)
    x = x * torch.rsqrt(variance + eps)
    return gamma * x.to(input_dtype)


def as_gemma_does(x, gamma, eps):
    output = x.float()
    output = output * torch.rsqrt(output.pow(2).mean(-1, keepdim=True) + eps)
    output = output * (1.0 + gamma.float())
    return output.type_as(x)


def rms_widened_where_needed(x, gamma, eps):
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    return (gamma * wide / (wide.square().mean(-1, keepdim=True) + eps).sqrt()).to(x.dtype)


def added_as_llama_does(x, branch, gamma, eps):
    x = x + branch
    return as_llama_does(x, gamma, eps), x


def gemma_through_float64(x, gamma, eps):
    """Through float64, and back by half() where the input is float16."""
    wide = x.double()
    y = wide * (wide.square().mean(-1, keepdim=True) + eps).rsqrt() * gamma.double().add(1)
    return y.half() if x.dtype == torch.float16 else y.type(x.dtype)


# gain_gradients


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


RIGHT = {
    "rms_norm": [
        sn.rms_norm,
        rms_by_length,
        rms_by_einsum,
        rms_in_torch,
        rms_built_in,
        as_llama_does,
        rms_widened_where_needed,
    ],
    "layer_norm_from_rms": [
        composed_of_flat_rows,
        composed_by_matrix,
        lambda x, norm, gamma, beta: torch.addcmul(beta, gamma, norm(x.sub(x.mean(dim=-1, keepdim=True)))),
    ],
    "add_rms_norm": [added_in_float64, added_in_torch, added_as_llama_does],
    "llama_rms_norm": [
        lambda x, gamma, eps: np.multiply(rms_by_length(x, 1, eps), gamma),
        llama_in_torch,
        as_llama_does,
    ],
    "gemma_rms_norm": [gemma_spread_out, gemma_in_torch, as_gemma_does, gemma_through_float64],
    "centre_writer": [
        centred_by_matrix,
        lambda weight, bias: ((weight.T - weight.sum(1) / weight.shape[1]).T, bias - sum(bias) / len(bias)),
        lambda weight, bias: (weight.sub(weight.mean(dim=1, keepdim=True)), bias.sub(bias.mean())),
    ],
    "rms_norm_backward": [sn.rms_norm_backward, backward_by_jacobian, backward_by_autograd],
    "safe_rms_norm": [safe_by_hypot, safe_by_power_of_two, safe_in_torch],
    "gain_gradients": [gains_of_all_tokens, gains_by_autograd],
}

IN_ANY_DTYPE = {
    "rms_norm": [rms_in_torch, rms_built_in, as_llama_does, rms_widened_where_needed],
    "llama_rms_norm": [llama_in_torch, as_llama_does],
    "gemma_rms_norm": [gemma_in_torch, as_gemma_does, gemma_through_float64],
}

# Named mistakes, written in another way


def centred_last(x, norm, gamma, beta):
    return (beta + norm(x) * gamma) @ (np.eye(len(gamma)) - 1 / len(gamma))


def centred_before_gamma(x, norm, gamma, beta):
    return beta + norm(x) @ (np.eye(len(gamma)) - 1 / len(gamma)) * gamma


NAMED = {"layer_norm_from_rms": {"centre_last": centred_last, "centre_after": centred_before_gamma}}

# Answers that fail on inputs that the task allows


def scaled_by(m):
    def safe(x, gamma, eps):
        u = x / np.where(m(x) == 0, 1, m(x))
        return gamma * (u / np.sqrt((u * u).mean(-1, keepdims=True) + eps / m(x) / m(x)))

    return safe


def equal_tokens(dys, xs, eps):
    own = [np.mean(dy * x / np.sqrt((x**2).mean(-1, keepdims=True) + eps), 0) for dy, x in zip(dys, xs, strict=True)]
    return [sum(own) * len(xs[0]) for _ in xs]


UNDESERVED = {
    "rms_norm": [lambda x, gamma, eps: checks.rms_norm.reference(x, np.abs(gamma), eps)],
    "safe_rms_norm": [
        scaled_by(lambda x: np.abs(x[..., :1])),
        scaled_by(lambda x: np.abs(x[..., -1:])),
        scaled_by(lambda x: np.median(np.abs(x), axis=-1, keepdims=True)),
        scaled_by(lambda x: np.abs(x).min(-1, keepdims=True)),
    ],
    "add_rms_norm": [lambda x, branch, gamma, eps: tuple(map(np.squeeze, added_in_float64(x, branch, gamma, eps)))],
    "gain_gradients": [equal_tokens],
}

COMBINED = {
    # https://github.com/stanford-cs336/assignment1-basics/issues/93
    "rms_norm": [
        *both("rms_norm", "variance eps_outside, axis0 no_gamma, sum no_eps, variance two_roots"),
        at_least_eps("rms_norm", "mean"),
    ],
    "layer_norm_from_rms": [
        *both("layer_norm_from_rms", "no_centre no_beta, axis0 no_gamma"),
        lambda x, norm, gamma, beta: (y := gamma * (norm(x) + beta)) - y.mean(-1, keepdims=True),
        lambda x, norm, gamma, beta: sn.layer_norm(x, gamma),
    ],
    "add_rms_norm": [
        *both("add_rms_norm", "old_stream eps_outside, norm_of_branch normed_stream, no_gamma swapped"),
        at_least_eps("add_rms_norm", "mean"),
    ],
    "llama_rms_norm": both("llama_rms_norm", "one_more eps_outside, layer_norm no_gamma, sum one_more"),
    "gemma_rms_norm": both("gemma_rms_norm", "gamma_alone eps_outside, layer_norm no_eps, two_more sum"),
    "centre_writer": both("centre_writer", "inputs weight_alone, one_mean bias_lost, inputs sums"),
    "rms_norm_backward": both(
        "rms_norm_backward",
        "root_constant no_gamma, layer_norm dgamma_mean, gamma_twice no_eps, sign dgamma_of_x",
    ),
    "safe_rms_norm": both("safe_rms_norm", "eps_grown no_gamma, sum one_maximum, zero_row eps_grown"),
    "gain_gradients": both("gain_gradients", "averaged mean_over_tokens, not_summed shift"),
}
