"""Set 04: other right answers, and answers with two mistakes at once."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from checks.combined import both

from subnorm.numpy import post_ln, pre_ln, rms_norm


def pre_ln_in_steps(x, sublayer, norm):
    skip = x
    x = norm(x)
    x = sublayer(x)
    return skip + x


def post_ln_in_place_on_the_branch(x, sublayer, norm):
    y = 1 * sublayer(x)
    y += x
    return norm(y)


def block_in_steps(x, attention, feed_forward, norm1, norm2):
    skip = x
    x = skip + attention(norm1(x))
    skip = x
    return feed_forward(norm2(skip)) + skip


def block_torch(x, attention, feed_forward, norm1, norm2):
    for sublayer, norm in ((attention, norm1), (feed_forward, norm2)):
        x = torch.add(x, sublayer(norm(x)))
    return x


def stack_recursive(x, sublayers, norm):
    if not sublayers:
        return norm(x)
    return stack_recursive(x + sublayers[0](norm(x)), sublayers[1:], norm)


def stack_torch(x, sublayers, norm):
    branches = []
    for sublayer in sublayers:
        branches.append(sublayer(norm(torch.stack([x, *branches]).sum(0))))
    return norm(torch.stack([x, *branches]).sum(0))


def warm_up_in_cases(step, d_model, steps):
    peak = 1 / (d_model * steps) ** 0.5
    return peak * step / steps if step < steps else peak * (steps / step) ** 0.5


def warm_up_torch(step, d_model, steps):
    step, d_model, steps = (torch.tensor(value, dtype=torch.float64) for value in (step, d_model, steps))
    return torch.rsqrt(d_model) * torch.minimum(torch.rsqrt(step), step / steps**1.5)


def deep_norm_by_roots(x, sublayer, norm, blocks):
    alpha = math.sqrt(math.sqrt(blocks + blocks))
    return norm(sublayer(x) + x * alpha)


def block_by_steps(x, attention, feed_forward, norms, placement):
    norms = iter(norms)
    if placement == "parallel":
        h = next(norms)(x)
        return x + (attention(h) + feed_forward(h))
    if placement not in ("pre", "post", "sandwich"):
        raise ValueError(placement)
    for sublayer in (attention, feed_forward):
        if placement == "pre":
            x = pre_ln(x, sublayer, next(norms))
        elif placement == "post":
            x = post_ln(x, sublayer, next(norms))
        else:
            before, after = next(norms), next(norms)
            x = x + after(sublayer(before(x)))
    return x


def any_block_torch(x, attention, feed_forward, norms, placement):
    add = torch.add
    match placement:
        case "pre":
            x = add(x, attention(norms[0](x)))
            return add(x, feed_forward(norms[1](x)))
        case "post":
            x = norms[0](add(x, attention(x)))
            return norms[1](add(x, feed_forward(x)))
        case "sandwich":
            x = add(x, norms[1](attention(norms[0](x))))
            return add(x, norms[3](feed_forward(norms[2](x))))
        case "parallel":
            return add(add(x, attention(norms[0](x))), feed_forward(norms[0](x)))
    raise ValueError(f"placement is {placement!r}")


class UnknownPlacement(ValueError):
    """An error of one's own, which is a ValueError."""


def block_with_an_error_of_its_own(x, attention, feed_forward, norms, placement):
    if placement not in ("pre", "post", "sandwich", "parallel"):
        raise UnknownPlacement(f"no placement is called {placement}")
    return block_by_steps(x, attention, feed_forward, norms, placement)


def heads_one_by_one(q, k, heads, gamma_q, gamma_k, eps):
    width = q.shape[-1] // heads
    scores = []
    for h in range(heads):
        mine = slice(h * width, (h + 1) * width)
        keys = rms_norm(k[..., mine], gamma_k, eps)
        scores.append(np.einsum("...id,...jd->...ij", rms_norm(q[..., mine], gamma_q, eps), keys) / width**0.5)
    return np.stack(scores, axis=-3)


def normed_behind_the_product(q, k, heads, gamma_q, gamma_k, eps):
    """Both gains on the queries, and the plain scores divided by what the norms divide by."""
    width = len(gamma_q)
    q, k = (np.moveaxis(x.reshape(*x.shape[:-1], heads, width), -2, -3) for x in (q, k))
    rms_q, rms_k = (np.sqrt((x**2).mean(-1) + eps) for x in (q, k))
    return (q * gamma_q * gamma_k) @ np.moveaxis(k, -1, -2) / rms_q[..., None] / rms_k[..., None, :] / np.sqrt(width)


def qk_norm_torch(q, k, heads, gamma_q, gamma_k, eps):
    q, k = (x.unflatten(-1, (heads, -1)).transpose(-2, -3) for x in (q, k))
    q = F.rms_norm(q, gamma_q.shape, gamma_q, eps) * gamma_q.numel() ** -0.5
    return q @ F.rms_norm(k, gamma_k.shape, gamma_k, eps).mT


def warm_up_in_float32(step, d_model, steps):
    step, d_model, steps = (np.float32(number) for number in (step, d_model, steps))
    return np.minimum(1 / np.sqrt(step), step / steps / np.sqrt(steps)) / np.sqrt(d_model)


def warm_up_as_an_array(step, d_model, steps):
    return np.where(step < steps, step * steps**-1.5, np.asarray(step) ** -0.5) / d_model**0.5


def deep_norm_into_a_copy(x, sublayer, norm, blocks):
    y = x.copy()
    y *= (2 * blocks) ** 0.25
    y += sublayer(x)
    return norm(y)


def block_with_a_long_message(x, attention, feed_forward, norms, placement):
    known = ["pre", "post", "sandwich", "parallel"]
    if placement not in known:
        raise ValueError("the placements are:\n" + "\n".join(known) + f"\nand not {placement}")
    return block_by_steps(x, attention, feed_forward, norms, placement)


def block_with_an_error_of_two_parts(x, attention, feed_forward, norms, placement):
    if placement not in {"pre", "post", "sandwich", "parallel"}:
        raise ValueError("unknown placement", placement)
    return block_by_steps(x, attention, feed_forward, norms, placement)


def capped_by_exponentials(scores, dy, cap):
    e = np.exp(2 * scores / cap)
    return cap * (e - 1) / (e + 1), dy * 4 * e / (e + 1) ** 2


def capped_by_autograd(scores, dy, cap):
    scores = scores.clone().requires_grad_()
    y = cap * torch.tanh(scores / cap)
    (y * dy).sum().backward()
    return y, scores.grad


RIGHT = {
    "pre_ln": [pre_ln, lambda x, sublayer, norm: torch.add(x, sublayer(norm(x))), pre_ln_in_steps],
    "post_ln": [post_ln, lambda x, sublayer, norm: norm(torch.add(sublayer(x), x)), post_ln_in_place_on_the_branch],
    "pre_ln_block": [block_torch, block_in_steps],
    "pre_ln_stack": [stack_torch, stack_recursive],
    "warm_up": [warm_up_torch, warm_up_in_cases, warm_up_in_float32, warm_up_as_an_array],
    "deep_norm": [
        lambda x, sublayer, norm, blocks: norm(torch.add(sublayer(x), x, alpha=(2 * blocks) ** 0.25)),
        deep_norm_by_roots,
        deep_norm_into_a_copy,
    ],
    "block": [
        any_block_torch,
        block_by_steps,
        block_with_an_error_of_its_own,
        block_with_a_long_message,
        block_with_an_error_of_two_parts,
    ],
    "qk_norm": [heads_one_by_one, normed_behind_the_product, qk_norm_torch],
    "soft_cap": [capped_by_exponentials, capped_by_autograd],
}


def added_to_the_branch(x, sublayer, norm):
    y = sublayer(norm(x))
    y += x
    return y


def without_a_message(x, attention, feed_forward, norms, placement):
    if placement not in ("pre", "post", "sandwich", "parallel"):
        raise ValueError
    return block_by_steps(x, attention, feed_forward, norms, placement)


def with_empty_hands(x, attention, feed_forward, norms, placement):
    """It takes the norms out of the caller's list."""
    if placement == "pre":
        return block_by_steps(x, attention, feed_forward, [norms.pop(0), norms.pop(0)], placement)
    return block_by_steps(x, attention, feed_forward, norms, placement)


def known_by_its_first_letters(x, attention, feed_forward, norms, placement):
    known = {"pre": "pre", "pos": "post", "san": "sandwich", "par": "parallel"}
    return block_by_steps(x, attention, feed_forward, norms, known.get(placement[:3], placement))


UNDESERVED = {
    "pre_ln": [added_to_the_branch],
    "warm_up": [lambda step, d_model, steps: round(warm_up_in_cases(step, d_model, steps), 5)],
    "block": [without_a_message, with_empty_hands, known_by_its_first_letters],
}


def in_place(x, sublayer, norm):
    x += norm(sublayer(x))
    return norm(x)


def swapped_and_normed(x, attention, feed_forward, norm1, norm2):
    x = norm2(x)
    x = x + attention(x)
    x = norm1(x)
    return x + feed_forward(x)


def parallel_with_one_norm(x, attention, feed_forward, norm1, norm2):
    h = norm1(x)
    return x + attention(h) + feed_forward(h)


def backwards_without_final_norm(x, sublayers, norm):
    for sublayer in sublayers[::-1]:
        x = x + sublayer(norm(x))
    return x


def normed_skip_without_final_norm(x, sublayers, norm):
    for sublayer in sublayers:
        x = norm(x)
        x = x + sublayer(x)
    return x


def swapped_and_one_norm(x, attention, feed_forward, norms, placement):
    if placement == "pre":
        x = norms[0](x + attention(x))
        return norms[0](x + feed_forward(x))
    if placement == "post":
        x = x + attention(norms[0](x))
        return x + feed_forward(norms[0](x))
    return block_by_steps(x, attention, feed_forward, norms, placement)


def two_placements_wrong(x, attention, feed_forward, norms, placement):
    if placement == "sandwich":
        x = norms[1](x + attention(norms[0](x)))
        return norms[3](x + feed_forward(norms[2](x)))
    if placement == "parallel":
        return x + attention(norms[0](x)) + feed_forward(norms[1](x))
    return block_by_steps(x, attention, feed_forward, norms, placement)


COMBINED = {
    "pre_ln": [lambda x, f, norm: norm(f(norm(x))), lambda x, f, norm: norm(x) + norm(f(x)), in_place],
    "post_ln": [lambda x, f, norm: f(norm(x)), lambda x, f, norm: norm(f(norm(x))), in_place],
    "pre_ln_block": [swapped_and_normed, parallel_with_one_norm],
    "pre_ln_stack": [backwards_without_final_norm, normed_skip_without_final_norm],
    "warm_up": [
        lambda step, d_model, steps: max(step**-0.5, step * steps**-1.5),  # max for min, and no width
        lambda step, d_model, steps: d_model**-0.5 * min(step**-1, step * steps**-0.5),  # both exponents
        lambda step, d_model, steps: d_model**0.5 * min(1, step / steps) * steps**-0.5,  # no decay, width multiplied
    ],
    "deep_norm": [
        lambda x, f, norm, blocks: norm(x + (2 * blocks) ** 0.5 * f(x)),  # square root, on the branch
        lambda x, f, norm, blocks: blocks**0.25 * x + f(x),  # not doubled, no norm
        lambda x, f, norm, blocks: (2 * blocks) ** 0.25 * norm(x) + (8 * blocks) ** -0.25 * f(norm(x)),
    ],
    "block": [swapped_and_one_norm, two_placements_wrong],
    "qk_norm": both("qk_norm", "all_heads no_scale, layer_norm eps_outside, no_transpose one_gain"),
    "soft_cap": both("soft_cap", "score_for_cap no_dy, multiplied cap_in_slope"),
}
