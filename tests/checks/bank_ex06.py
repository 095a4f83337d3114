"""Set 06: other right answers, and answers with two mistakes at once."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from checks.combined import at_least_eps, both

from subnorm_lab import checks

# Right answers


def norm_by_length(x, gamma, eps):
    d = x.shape[-1]
    length = np.sqrt(np.sum(np.square(x), axis=-1) + d * eps)
    return x * (math.sqrt(d) / length)[..., None] * gamma


def norm_torch(x, gamma, eps):
    return F.rms_norm(x, gamma.shape, gamma, eps)


def norm_in_float32(x, gamma, eps):
    wide = np.asarray(x, np.float32)
    return (gamma * wide / np.sqrt((wide**2).mean(-1, keepdims=True) + eps)).astype(x.dtype)


def head_token_by_token(q, k, v):
    rows = []
    for i, query in enumerate(q):
        scores = k[: i + 1] @ query / math.sqrt(len(query))
        weights = np.exp(scores - scores.max())
        rows.append(weights @ v[: i + 1] / weights.sum())
    return np.array(rows)


def head_torch(q, k, v):
    return F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]


def head_by_addition(q, k, v):
    scores = (q / np.sqrt(q.shape[1])) @ k.T + np.triu(np.full((len(q), len(k)), -np.inf), 1)
    scores -= np.max(scores, axis=1, keepdims=True)
    return np.exp(scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))) @ v


def swiglu_by_tanh(h, gate, up, down):
    a = np.einsum("td,hd->th", h, gate)
    return np.einsum("th,dh->td", a * (1 + np.tanh(a / 2)) / 2 * (h @ up.T), down)


def swiglu_torch(h, gate, up, down):
    return F.linear(F.silu(F.linear(h, gate)) * F.linear(h, up), down)


def swiglu_token_by_token(h, gate, up, down):
    return np.stack([down @ ((a := gate @ row) / (1 + np.exp(-a)) * (up @ row)) for row in h])


def block_in_a_loop(x, attention, feed_forward, norm, gains):
    for sublayer, gamma in zip((attention, feed_forward), gains, strict=True):
        x = x + sublayer(norm(x, gamma))
    return x


def block_torch(x, attention, feed_forward, norm, gains):
    x = torch.add(x, attention(norm(x, gains[0])))
    return torch.add(x, feed_forward(norm(x, gains[1])))


def block_with_gains_by_hand(x, attention, feed_forward, norm, gains):
    first, second = gains
    skip = x
    x = attention(first * norm(x)) + skip
    skip = x
    return feed_forward(second * norm(x)) + skip


def scores_torch(x, norm, gamma, embedding):
    return torch.mv(embedding, norm(x[-1:], gamma)[0])


def tell_by_pairs(next_scores, tokens, count, end):
    text = [*tokens]
    while len(text) < len(tokens) + count:
        _score, token = max((score, token) for token, score in enumerate(next_scores(text)))
        if token == end:
            break
        text += [token]
    return text[len(tokens) :]


def tell_recursively(next_scores, tokens, count, end):
    if count == 0 or (token := next_scores(tokens).argmax()) == end:
        return []
    return [token, *tell_recursively(next_scores, [*tokens, token], count - 1, end)]


def tell_torch(next_scores, tokens, count, end):
    story = []
    for _ in range(count):
        token = torch.as_tensor(next_scores(tokens + story)).argmax().item()
        if token == end:
            return story
        story.append(token)
    return story


def tell_in_a_copy(next_scores, tokens, count, end):
    text = list(tokens)
    while len(text) - len(tokens) < count:
        text.append(int(np.argmax(next_scores(text))))
        if text[-1] == end:
            text.pop()
            break
    return text[len(tokens) :]


RIGHT = {
    "norm": [norm_by_length, norm_torch, norm_in_float32],
    "head": [head_token_by_token, head_torch, head_by_addition],
    "swiglu": [swiglu_by_tanh, swiglu_torch, swiglu_token_by_token],
    "story_block": [block_in_a_loop, block_torch, block_with_gains_by_hand],
    "next_scores": [
        lambda x, norm, gamma, embedding: (norm(x, gamma) @ embedding.T)[-1],
        scores_torch,
    ],
    "tell": [tell_by_pairs, tell_recursively, tell_torch, tell_in_a_copy],
}


# Answers that change what the caller keeps, or stop at the wrong token


def tell_into_the_prompt(next_scores, tokens, count, end):
    story = []
    for _ in range(count):
        best = int(np.argmax(next_scores(tokens)))
        if best == end:
            break
        tokens.append(best)
        story.append(best)
    return story


def tell_at_least_one(next_scores, tokens, count, end):
    story = []
    while True:
        best = int(np.argmax(next_scores(tokens + story)))
        if best == end:
            return story
        story.append(best)
        if len(story) >= count:
            return story


def tell_from_a_window(next_scores, tokens, count, end):
    return checks.tell.reference(lambda text: next_scores(text[-8:]), tokens, count, end)


def tell_with_scores_above_0(next_scores, tokens, count, end):
    story = []
    for _ in range(count):
        best, highest = None, 0
        for token, score in enumerate(next_scores(tokens + story)):
            if score > highest:
                best, highest = token, score
        if best == end:
            break
        story.append(best)
    return story


def block_on_the_branch(x, attention, feed_forward, norm, gains):
    y = attention(norm(x, gains[0]))
    y += x
    return y + feed_forward(norm(y, gains[1]))


UNDESERVED = {
    "norm": [lambda x, gamma, eps: checks.norm.reference(x, np.abs(gamma), eps)],
    "tell": [
        tell_into_the_prompt,
        tell_at_least_one,
        tell_from_a_window,
        tell_with_scores_above_0,
    ],
    "story_block": [block_on_the_branch],
}

# Two mistakes at once


def post_with_one_gain(x, attention, feed_forward, norm, gains):
    x = norm(x + attention(x), gains[0])
    return norm(x + feed_forward(x), gains[0])


def normed_skip_without_gains(x, attention, feed_forward, norm, gains):
    x = norm(x)
    x = x + attention(x)
    x = norm(x)
    return x + feed_forward(x)


COMBINED = {
    "norm": [
        *both("norm", "no_gamma eps_outside, layer_norm no_gamma, axis0 no_root"),
        at_least_eps("norm", "mean"),
    ],
    "head": both(
        "head",
        "no_scale over_queries, mask_upside_down keys_for_values, scale_without_root zero_mask",
    ),
    "swiglu": both("swiglu", "sign added, gelu skip_inside"),
    "story_block": [post_with_one_gain, normed_skip_without_gains, *both("story_block", "parallel one_gain")],
    "next_scores": [
        lambda x, norm, gamma, embedding: embedding @ x[0],  # no norm, first token
        lambda x, norm, gamma, embedding: embedding @ norm(x.mean(0)),  # no gain, mean token
    ],
    "tell": both("tell", "only_last least_likely, prompt_returned end_told, story_not_read one_short"),
}
