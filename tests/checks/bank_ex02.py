"""Set ex02: other right answers, and answers with two mistakes at once."""

import numpy as np
import torch
import torch.nn.functional as F
from checks.combined import at_least_eps, both

from subnorm import numpy as sn
from subnorm import torch as st

# layer_norm


def by_einsum(x, gamma, beta, eps):
    wide, d = x.astype(float), x.shape[-1]
    centred = wide - np.einsum("...i->...", wide)[..., None] / d
    size = np.linalg.norm(centred, axis=-1, keepdims=True) / np.sqrt(d)
    return (gamma * centred / np.hypot(size, np.sqrt(eps)) + beta).astype(x.dtype)


def row_by_row(x, gamma, beta, eps):
    y = np.empty_like(x)
    for at in np.ndindex(x.shape[:-1]):
        row = x[at].astype(np.float64)
        y[at] = (row - np.mean(row)) * (np.var(row) + eps) ** -0.5 * gamma + beta
    return y


def in_torch(x, gamma, beta, eps):
    wide = x.float() if x.dtype == torch.float16 else x
    centred = wide - wide.mean(-1, keepdim=True)
    return (gamma * centred * torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + eps) + beta).to(x.dtype)


def by_torch(x, gamma, beta, eps):
    return F.layer_norm(x, x.shape[-1:], gamma, beta, eps)


# invariances


def alone(norm, x):
    """Each test on a different token, in a different way."""
    y, c = norm(x), np.arange(len(x))[:, None]
    p = np.random.default_rng(0).permutation(x.shape[1])
    return {
        "tokens": np.allclose(norm(x[:1]), y[:1]),
        "permutation": np.allclose(norm(x[:, p])[:, np.argsort(p)], y),
        "scale": np.allclose(norm(x * (1 + c)), y),
        "shift": np.abs(norm(x - 2 * c) - y).max() < 1e-6,
    }


def one_token(norm, x):
    y, last = norm(x), len(x) - 1
    out = {}
    for name, token in {"shift": x[last] + 100, "scale": x[last] * 0.01}.items():
        out[name] = np.allclose(norm(np.vstack([x[:last], token]))[last], y[last], rtol=1e-3)
    swapped = x.copy()
    swapped[:, [0, 1]] = x[:, [1, 0]]
    back = norm(swapped)
    back[:, [0, 1]] = back[:, [1, 0]]
    out["permutation"] = np.allclose(back, y)
    doubled = x.copy()
    doubled[last] *= -2
    out["tokens"] = np.array_equal(norm(doubled)[:last], y[:last])
    return out


def asked_in_torch(norm, x):
    y = norm(x)
    shifted, scaled, other = x.clone(), x.clone(), x.clone()
    shifted[1] += 3
    scaled[1] *= 3
    other[1] = torch.flip(other[1], (0,)) ** 2
    order = torch.arange(x.shape[1] - 1, -1, -1)
    others = torch.arange(len(x)) != 1
    return {
        "shift": torch.allclose(norm(shifted), y),
        "scale": torch.allclose(norm(scaled), y),
        "permutation": torch.allclose(norm(x[:, order]), y[:, order]),
        "tokens": torch.allclose(norm(other)[others], y[others]),
    }


# fold


def by_diagonal(gamma, beta, weight, bias):
    return weight @ np.diag(gamma), beta @ weight.T + (0 if bias is None else bias)


def by_probing(gamma, beta, weight, bias):
    """The layer is affine in xhat: its value at 0 is the bias, its change along each feature a column."""

    def layer(xhat):
        return weight @ (gamma * xhat + beta) + (0 if bias is None else bias)

    zero = layer(np.zeros_like(gamma))
    return np.stack([layer(unit) - zero for unit in np.eye(len(gamma), dtype=gamma.dtype)], axis=1), zero


def fold_in_torch(gamma, beta, weight, bias):
    linear = torch.mv(weight, beta)
    return torch.einsum("od,d->od", weight, gamma), linear if bias is None else bias + linear


# group_norm


def grouped(x, groups, gamma, beta, eps):
    v = x.reshape(x.shape[0], groups, -1).astype(float)
    v = (v - v.mean(-1, keepdims=True)) / np.sqrt(v.var(-1, keepdims=True) + eps)
    return (v.reshape(x.shape) * gamma[:, None] + beta[:, None]).astype(x.dtype)


def by_loops(x, groups, gamma, beta, eps):
    y = np.empty_like(x)
    each = x.shape[1] // groups
    for n in range(len(x)):
        for k in range(0, x.shape[1], each):
            part = x[n, k : k + each].astype(np.float64)
            part = (part - part.mean()) / (part.var() + eps) ** 0.5
            y[n, k : k + each] = part * gamma[k : k + each, None] + beta[k : k + each, None]
    return y


def group_norm_of_torch(x, groups, gamma, beta, eps):
    return F.group_norm(x.float(), groups, gamma.float(), beta.float(), eps).to(x.dtype)


# make_layer_norm


class Own(torch.nn.Module):
    def __init__(self, d, eps):
        super().__init__()
        self.eps = eps
        self.bias = torch.nn.Parameter(torch.zeros(d))
        self.weight = torch.nn.Parameter(torch.ones(d))

    def forward(self, x):
        centred = x - x.mean(dim=-1, keepdim=True)
        variance = (centred * centred).sum(dim=-1, keepdim=True) / x.shape[-1]
        return torch.addcmul(self.bias, self.weight, centred / torch.sqrt(variance + self.eps))


# layer_norm_backward


def by_autograd(dy, x, gamma, eps):
    inputs = x.float() if x.dtype == torch.float16 else x
    inputs, gain = inputs.clone().requires_grad_(), gamma.to(inputs.dtype).clone().requires_grad_()
    beta = torch.zeros_like(gain, requires_grad=True)
    F.layer_norm(inputs, gamma.shape, gain, beta, eps).backward(dy.to(inputs.dtype))
    return tuple(grad.to(x.dtype) for grad in (inputs.grad, gain.grad, beta.grad))


def step_by_step(dy, x, gamma, eps):
    """Back through every node of the graph, as it is derived for BatchNorm."""
    dtype, d = x.dtype, x.shape[-1]
    dy, x, gamma = (a.astype(np.float64) for a in (dy, x, gamma))
    centred = x - x.mean(-1, keepdims=True)
    root = np.sqrt((centred**2).mean(-1, keepdims=True) + eps)
    dxhat = gamma * dy
    dvar = (dxhat * centred).sum(-1, keepdims=True) * -0.5 / root**3
    dcentred = dxhat / root + dvar * 2 * centred / d
    dx = dcentred - dcentred.sum(-1, keepdims=True) / d
    rows = (dy * centred / root).reshape(-1, d)
    return [dx.astype(dtype), rows.sum(0).astype(dtype), dy.reshape(-1, d).sum(0).astype(dtype)]


def by_jacobian(dy, x, gamma, eps):
    """With the matrix itself, row by row."""
    d, dtype = x.shape[-1], x.dtype
    dx, dgamma = np.empty(x.shape), np.zeros(d)
    for at in np.ndindex(x.shape[:-1]):
        row, grad = x[at].astype(float), dy[at].astype(float)
        r = 1 / np.sqrt(row.var() + eps)
        xhat = (row - row.mean()) * r
        dx[at] = r * (np.eye(d) - np.ones((d, d)) / d - np.outer(xhat, xhat) / d) @ (gamma * grad)
        dgamma += grad * xhat
    dbeta = dy.astype(float).reshape(-1, d).sum(0)
    return dx.astype(dtype), dgamma.astype(dtype), dbeta.astype(dtype)


# In PyTorch, for input of any dtype. Whisper's LayerNorm and the GroupNorm32 of guided diffusion widen in this way:
# https://github.com/openai/whisper/blob/main/whisper/model.py
# https://github.com/openai/guided-diffusion/blob/main/guided_diffusion/nn.py


def layer_norm_widened(x, gamma, beta, eps):
    return F.layer_norm(x.float(), gamma.shape, gamma.float(), beta.float(), eps).type(x.dtype)


def group_norm_widened(x, groups, gamma, beta, eps):
    y = F.group_norm(x.to(torch.float32), groups, eps=eps)
    return (y * gamma.float()[:, None] + beta.float()[:, None]).type_as(x)


def layer_norm_in_own_dtype(x, gamma, beta, eps):
    """The statistics alone are widened; half of float16's numbers are multiplied as they are."""
    mean = x.mean(-1, keepdim=True, dtype=torch.float32)
    centred = x.to(torch.float32).sub(mean)
    rstd = centred.square().mean(-1, keepdim=True).add(eps).rsqrt()
    xhat = (centred * rstd).to(x.dtype)
    return torch.addcmul(beta, xhat, gamma)


RIGHT = {
    "layer_norm": [
        sn.layer_norm,
        by_einsum,
        row_by_row,
        in_torch,
        by_torch,
        layer_norm_widened,
        layer_norm_in_own_dtype,
    ],
    "invariances": [alone, one_token, asked_in_torch],
    "fold": [by_diagonal, by_probing, fold_in_torch],
    "group_norm": [grouped, by_loops, group_norm_of_torch, group_norm_widened],
    "make_layer_norm": [lambda d, eps: torch.nn.LayerNorm(d, eps=eps), lambda d, eps: st.LayerNorm(d, eps), Own],
    "layer_norm_backward": [sn.layer_norm_backward, step_by_step, by_jacobian, by_autograd],
}

IN_ANY_DTYPE = {
    "layer_norm": [in_torch, by_torch, layer_norm_widened, layer_norm_in_own_dtype],
    "group_norm": [group_norm_of_torch, group_norm_widened],
}

# Answers that inspect the norm instead of measuring

ANSWERS = {  # shift, scale, permutation, tokens
    "layer": (True, True, True, True),
    "rms": (False, True, True, True),
    "batch": (False, False, True, False),
    "centring": (True, False, True, True),
    "squares": (False, True, True, True),
    "nothing": (False, False, True, True),
}


def answered(kind, gain):
    found = dict(zip(("shift", "scale", "permutation", "tokens"), ANSWERS.get(kind, ANSWERS["layer"]), strict=True))
    return found | {"permutation": not gain}


def by_attributes(norm, x):
    """Look up the answer by the object's attributes."""
    return answered(getattr(norm, "kind", "layer"), getattr(norm, "gain", None) is not None)


def by_one_probe(norm, x):
    """One call on fixed numbers, compared with the results of the class functions."""
    z = np.sin(np.arange(1.0, 43.0)).reshape(6, 7)[:, : x.shape[1]]
    if x.shape[1] > 7:
        z = np.sin(np.arange(1.0, 6.0 * x.shape[1] + 1)).reshape(6, -1)
    y = norm(z)
    centred = z - z.mean(1, keepdims=True)
    rms = z / np.sqrt((z * z).mean(1, keepdims=True))
    known = {
        "layer": centred / centred.std(1, keepdims=True), "rms": rms, "squares": rms**2, "nothing": z,
        "batch": (z - z.mean(0)) / z.std(0), "centring": centred,
    }  # fmt: skip
    gains = {kind: y / one for kind, one in known.items()}
    kind = min(gains, key=lambda kind: np.ptp(gains[kind], axis=0).max())
    return answered(kind, bool(np.ptp(gains[kind][0]) > 1e-6))


UNDESERVED = {"invariances": [by_attributes, by_one_probe]}

COMBINED = {
    "layer_norm": [
        *both(
            "layer_norm",
            "ddof1 eps_outside, ddof1 no_eps, axis0 no_gamma, no_mean no_beta, ddof1 float16 no_beta",
        ),
        at_least_eps("layer_norm", "var"),
    ],
    "invariances": both(
        "invariances",
        "negative_scale permuted_tokens, whole_batch watched_itself, shifted_feature not_permuted",
    ),
    "fold": both("fold", "rows bias_lost, divided beta_unseen, gamma_twice bias_lost"),
    "group_norm": [
        *both("group_norm", "strided ddof1, each_channel eps_outside, group_size no_gamma"),
        at_least_eps("group_norm", "var"),
    ],
    "make_layer_norm": both("make_layer_norm", "unbiased eps_outside, names one_row, eps_ignored no_mean"),
    "layer_norm_backward": both(
        "layer_norm_backward",
        "no_gamma no_shift, no_stretch swapped, axis0 sum_of_features, no_eps ddof1",
    ),
}
