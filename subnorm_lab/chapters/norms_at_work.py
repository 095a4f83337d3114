"""Figures and proofs of chapter 10, Norms at work."""

import itertools
from functools import cache

import numpy as np
import torch

import subnorm.numpy as sn
import subnorm.torch as st
from subnorm_lab import chapters, diagrams, figures, live, stories
from subnorm_lab.experiments import fixed_order, same_answer, sharded
from subnorm_lab.report import say, table
from subnorm_lab.stories.torch import Stories


def begin():
    chapters.begin()
    return stories.load(), stories.beginnings()


TOKEN = np.array([2.0, 4.0, 6.0, 12.0])
HALVES = (slice(0, 2), slice(2, 4))


def draw_halves():
    def frame(by, times):
        x = TOKEN * [1, 1, times, times]
        right = sn.rms_norm(x, eps=0)
        own = np.concatenate([sn.rms_norm(x[half], eps=0) for half in HALVES])
        y = right if by == "sum" else own
        first, second = ((x[half] ** 2).sum() for half in HALVES)
        sends = f"Each process sends one number: {first:g} and {second:g}. " if by == "sum" else "Nothing is sent. "
        return f"{sends}The largest error is {np.abs(y - right).max():.2f}.", [
            list(zip(y[half], right[half], strict=True)) for half in HALVES
        ]

    live.chart(
        "halves",
        "One token of four features, cut between two processes and normalised; dotted: the right values",
        [
            live.choice(
                "by", "each process divides by", {"its own root mean square": "own", "that of both": "sum"}, "own"
            ),
            live.slider("times", "factor on the features of process 1", [0.25, 0.5, 1.0, 2.0, 4.0], 1.0, play=True),
        ],
        [live.Columns(f"process {k}", (0.0, 2.0)) for k in (0, 1)],
        frame,
        alt="Two panels of two bars. Process 0 holds the features 2 and 4, process 1 holds 6 and 12. Each divides by "
        "its own root mean square, and both get 0.63 and 1.26. Dotted outlines show the right values: lower for "
        "process 0, higher for process 1. The largest error is 0.70.",
        side=2,
    )


def draw_all_reduce():
    figures.show(
        diagrams.all_reduce(),
        alt="Two processes, from left to right. Process 0 holds the features 2 and 4 and adds their squares to 20, "
        "process 1 holds 6 and 12 and adds theirs to 180. Both sums go into one plus, and both processes get 200 back. "
        "Each divides its features by the root of 200 over 4.",
        dpi=86,
        narrow=diagrams.all_reduce(upright=True),
    )


def prove_halves(own_mean_square):
    """Prove claims 10-halves, 10-patient, 10-hides."""
    for times in (0.25, 1.0, 4.0):
        y = own_mean_square(TOKEN * [1, 1, times, times], 1.0, 2)
        np.testing.assert_allclose(y, np.sqrt([0.4, 1.6, 0.4, 1.6]), rtol=1e-4)
    model, texts, usual = stories.load(), stories.beginnings(), []
    for shards in (1, 2, 4, 8):

        def norm(x, gamma, shards=shards):
            return own_mean_square(x, gamma, shards)

        usual.append(stories.losses(stories.altered(model, norm=norm), texts))
    one, *more = np.array(usual)
    np.testing.assert_allclose(one, stories.losses(model, texts), rtol=1e-12)
    costs = [found - one for found in more]
    assert (costs[0] > 0).all()
    assert (costs[1] > costs[0]).all()
    assert (costs[2] > costs[1]).all()
    say("loss", one.mean())
    say("own_cost", costs[0].mean(), ".1f")
    say("own_cost_8", costs[2].mean(), ".1f")
    states = np.stack([stories.stream(model, text) for text in texts])  # (texts, 11, T, d)
    first, second = ((states[..., half] ** 2).mean(-1) for half in (slice(0, 32), slice(32, 64)))
    say("halves_most", (first / second).max(), ".0f")
    errors = [relative_error(own_mean_square, d) for d in (8, 64, 512, 4096)]
    assert all(narrow > 2 * wide for narrow, wide in itertools.pairwise(errors))
    assert errors[-1] < 0.01


def relative_error(own_mean_square, d):
    x = np.random.default_rng(0).standard_normal((100, d))
    right = sn.rms_norm(x)
    return np.median(np.linalg.norm(own_mean_square(x, 1.0, 2) - right, axis=-1) / np.linalg.norm(right, axis=-1))


@cache
def norm_in_training(k=4):
    """Norm k of the trained model, for the loss of a text: its input, gain, dy and dgamma."""
    model, texts = stories.load(), stories.beginnings()
    twin, seen = Stories(model), []
    twin.norms[k].register_forward_hook(lambda _norm, inputs, output: seen.extend([inputs[0], output]))
    loss = twin.loss(torch.tensor(texts[0]))
    x, y = seen
    dy, dgamma = torch.autograd.grad(loss, [y, twin.norms[k].weight])
    return x.detach(), twin.norms[k].weight.detach(), dy, dgamma


def split(x, *more):
    """The features of a tensor and its gain for process 0 and for process 1."""
    half = x.shape[-1] // 2
    return (x[..., :half], *(m[..., :half] for m in more)), (x[..., half:], *(m[..., half:] for m in more))


def prove_one_number(features_split):
    """Prove claims 10-one-number, 10-bits."""
    x, gamma, _, _ = norm_in_training()
    T, d = x.shape
    pair = sharded.pair()
    y = torch.cat(pair.run(features_split, *((*part, d) for part in split(x, gamma))), dim=-1)
    assert pair.sent == [T]
    assert (y - st.rms_norm(x, gamma, eps=1e-5)).abs().max() < 1e-13
    narrow, gain = x.float(), gamma.float()
    y = torch.cat(pair.run(features_split, *((*part, d) for part in split(narrow, gain))), dim=-1)
    whole = st.rms_norm(narrow, gain, eps=1e-5)
    assert (y - whole).abs().max() < 4 * torch.finfo().eps * whole.abs().max()
    total = sum((half * half).sum(-1, keepdim=True) for half in (narrow[:, :32].clone(), narrow[:, 32:].clone()))
    assert torch.equal(y, narrow * torch.rsqrt(total / d + 1e-5) * gain)
    squares = np.square(narrow.numpy())
    one, two = (squares[:, k : k + n].cumsum(-1, dtype=np.float32)[:, -1] for k, n in ((0, 32), (32, 32)))
    apart = squares.cumsum(-1, dtype=np.float32)[:, -1] != one + two
    assert apart.any()
    assert not apart.all()


def prove_tokens(gains_gradient):
    """Prove claims 10-tokens, 10-sum, 10-average."""
    x, gamma, dy, dgamma = norm_in_training()
    pair, half = sharded.pair(), len(x) // 2
    parts = [(x[:half], gamma, dy[:half]), (x[half:], gamma, dy[half:])]
    right = pair.run(gains_gradient, *parts)
    assert pair.sent == [len(gamma)]
    assert torch.equal(*right)
    torch.testing.assert_close(right[0], dgamma)
    averaged = pair.run(gains_gradient, *((*part, "averaged") for part in parts))
    torch.testing.assert_close(averaged[0], dgamma / 2)
    own = pair.run(gains_gradient, *((*part, "not summed") for part in parts))
    assert pair.sent == []
    assert not torch.allclose(*own, rtol=0.1, atol=0)
    torch.testing.assert_close(own[0] + own[1], dgamma)
    whole = st.rms_norm(x.float(), gamma.float())
    assert torch.equal(whole, torch.cat([st.rms_norm(part.float(), gamma.float()) for part in x.split(half)]))


def wrong_norm(all_reduce, x, gamma, dy, width, mistake):
    """A split norm, forward and backward, with a mistake or none: y, dx and dgamma of this process."""
    x.requires_grad_()
    gamma.requires_grad_()
    squares = (x * x).sum(-1, keepdim=True)
    if mistake == "its own mean square":
        mean = squares / x.shape[-1]
    elif mistake == "no message back":
        mean = (squares + (all_reduce(squares) - squares).detach()) / width
    else:
        mean = all_reduce(squares) / width
    y = x * torch.rsqrt(mean + 1e-5) * gamma
    dx, dgamma = torch.autograd.grad(y, (x, gamma), dy)
    return y, dx, dgamma


FEATURE_MISTAKES = ("none", "its own mean square", "no message back")
TOKEN_MISTAKES = ("averaged", "not summed")
TESTS = ("finite, right shapes", "forward as in one process", "processes agree on gains", "gradients as in one process")


@cache
def passed(gains_gradient):
    """Which tests each mistake passes: {mistake: one bool or None for each of TESTS}."""
    x, gamma, dy, dgamma = norm_in_training()
    gain = gamma.clone().requires_grad_()
    twin = x.clone().requires_grad_()
    whole = st.rms_norm(twin, gain, eps=1e-5)
    dx, _ = torch.autograd.grad(whole, (twin, gain), dy)
    pair, half, found = sharded.pair(), len(x) // 2, {}
    for mistake in FEATURE_MISTAKES:
        parts = pair.run(wrong_norm, *((*part, x.shape[-1], mistake) for part in split(x, gamma, dy)))
        y, back, gains = (torch.cat(one, dim=-1) for one in zip(*parts, strict=True))
        found[mistake] = (
            all(one.isfinite().all() and one.shape == like.shape for one, like in ((y, x), (back, x), (gains, gamma))),
            torch.allclose(y, whole),
            None,
            torch.allclose(back, dx) and torch.allclose(gains, dgamma),
        )
    for mistake in TOKEN_MISTAKES:
        parts = [(x[:half], gamma, dy[:half], mistake), (x[half:], gamma, dy[half:], mistake)]
        first, second = pair.run(gains_gradient, *parts)
        fine = bool(first.isfinite().all()) and first.shape == gamma.shape
        found[f"gains' gradients {mistake}"] = (
            fine,
            True,
            torch.allclose(first, second),
            torch.allclose(first, dgamma),
        )
    return found


MARKS = {True: "passes", False: "**fails**", None: "–"}


def tabulate_tests(gains_gradient):
    table(
        ["mistake", *TESTS],
        [[mistake, *(MARKS[one] for one in row)] for mistake, row in passed(gains_gradient).items()],
    )


def prove_tests(gains_gradient):
    """Prove claim 10-tests."""
    found = passed(gains_gradient)
    assert found["none"] == (True, True, None, True)
    assert all(row[0] for row in found.values())
    assert [row[3] for row in found.values()] == [True] + [False] * 4
    assert found["no message back"][1]
    assert not found["its own mean square"][1]
    assert found["gains' gradients averaged"][2]
    assert not found["gains' gradients not summed"][2]


@cache
def queries():
    """The queries of the trained model's third attention, cut into heads, (T, 8, 8), without their rotation."""
    model, texts = stories.load(), stories.beginnings()
    x = stories.stream(model, texts[0])[4]
    q = sn.rms_norm(x, model.gains[4]) @ model.weights[4]["q"].T
    return torch.from_numpy(q).unflatten(-1, (model.heads, -1))


def prove_heads(qk_norm):
    """Prove claim 10-heads."""
    q, pair = queries(), sharded.pair()
    each = torch.cat(pair.run(qk_norm, (q[:, :4], "each head"), (q[:, 4:], "each head")), dim=1)
    assert pair.sent == []
    torch.testing.assert_close(each, st.rms_norm(q, torch.ones(8, dtype=q.dtype), eps=1e-5))
    every = torch.cat(pair.run(qk_norm, (q[:, :4], "all heads"), (q[:, 4:], "all heads")), dim=1)
    assert pair.sent == [len(q)]
    flat = st.rms_norm(q.flatten(1), torch.ones(64, dtype=q.dtype), eps=1e-5)
    torch.testing.assert_close(every.flatten(1), flat)
    assert (each - every).abs().max() > 0.1


@cache
def random_rows(count=256, d=4096):
    """Rows of float32."""
    return np.random.default_rng(0).standard_normal((count, d)).astype(np.float32)


def prove_threads(sum_of_squares):
    """Prove claim 10-threads."""
    x = random_rows()
    usual, other = sum_of_squares(x, 1024), sum_of_squares(x, 256)
    share = (usual != other).mean()
    assert 0.1 < share < 0.3
    exact = (x.astype(np.float64) ** 2).sum(-1)
    for found in (usual, other):
        assert (np.abs(found / exact - 1) < 4e-7).all()


SHOWN = ("F.rms_norm", "kernels.rms_norm", "st.rms_norm", "x @ W", "x @ W, one row at a time")


def tabulate_batch():
    record = same_answer.recorded()
    batches = [record["batches"].index(n) for n in (2, 8, 64, 4096)]
    table(
        ["function", "format", "batch of 2", "of 8", "of 64", "of 4096"],
        [
            [f"`{name}`", fmt, *(f"{moved[k]:.0e}" if moved[k] else "0" for k in batches)]
            for name in SHOWN
            for fmt, found in record["found"].items()
            for moved in [found["batch"][name]]
        ],
    )


def prove_batch():
    """Prove claims 10-batch, 10-runs."""
    record = same_answer.recorded()
    for found in record["found"].values():
        batch = found["batch"]
        for name in ("F.layer_norm", "F.rms_norm", "kernels.rms_norm", "softmax", "x @ W, one row at a time"):
            assert not any(batch[name])
        assert any(batch["x @ W"])
        assert found["runs"]["sum by index_add_"] == record["runs"]
        assert all(n == 1 for name, n in found["runs"].items() if name != "sum by index_add_")
    assert any(record["found"]["float32"]["batch"]["st.rms_norm"])
    say("runs", record["runs"], ".0f")


def prove_noise(noisy):
    """Prove claims 10-noise, 10-ties."""
    model = stories.load()
    turned = {digits: [] for digits in (23, 10, 7)}  # {digits: (token at which a story turns, margin of its score)}
    for beginning in ("", "One day"):
        tokens = model.tokenizer.encode(beginning)
        usual = stories.continuation(model, tokens, 256)
        best = np.sort(stories.logits(model, stories.stream(model, tokens + usual)[-1]), axis=-1)
        margin = (best[:, -1] - best[:, -2])[len(tokens) - 1 :]
        assert np.median(margin) > 2
        for digits, draw in itertools.product(turned, range(4)):
            other = stories.continuation(noisy(model, digits, draw), tokens, 256)
            differs = [k for k, (a, b) in enumerate(zip(usual, other, strict=False)) if a != b]
            turned[digits] += [(k, margin[k]) for k in differs[:1]]
    assert [len(found) for found in turned.values()] == [0, 3, 8]
    assert all(gap < 0.1 for found in turned.values() for _, gap in found)
    say("same_tokens", min(turned[7])[0], ".0f")


def tabulate_cost():
    record = fixed_order.recorded()
    table(
        ["", *(f"{n} row{'s' * (n > 1)}" for n in record["batches"]), "bits of a row depend on the batch"],
        [
            [
                name,
                *(f"{found[str(n)][1]:.1f}" for n in record["batches"]),
                "yes" if any(record["moved"][name]) else "no",
            ]
            for name, found in record["ratios"].items()
        ],
    )


def prove_cost():
    """Prove claim 10-cost."""
    record = fixed_order.recorded()
    one, tiles = (record["ratios"][name] for name in ("one row at a time", "in tiles of one shape"))
    assert any(record["moved"]["x @ W"])
    assert not any(record["moved"]["one row at a time"])
    assert not any(record["moved"]["in tiles of one shape"])
    assert one["64"][0] > 2
    assert tiles["1"][0] > 5
    assert tiles["64"][2] < 1.5
    say("one_row_64", one["64"][1], ".1f")
    say("tiles_1", tiles["1"][1], ".0f")


def prove_arrivals(sums):
    """Prove claim 10-arrivals."""
    assert sums(64) > 40
    assert sums(2) == sums(1) == 1
    say("three_blocks", sums(3), ".0f")


def backward_of_features(all_reduce, x, gamma, dy, width):
    """Formula (10.2) for this process's features: dx and dgamma."""
    r = torch.rsqrt(all_reduce((x * x).sum(-1, keepdim=True)) / width + 1e-5)
    xhat, dxhat = x * r, gamma * dy
    mean = all_reduce((xhat * dxhat).sum(-1, keepdim=True)) / width
    return r * (dxhat - xhat * mean), (dy * xhat).sum(0)


def prove_backward():
    """Prove claim 10-backward."""
    x, gamma, dy, dgamma = norm_in_training()
    twin = x.clone().requires_grad_()
    (expected,) = torch.autograd.grad(st.rms_norm(twin, gamma, eps=1e-5), twin, dy)
    pair = sharded.pair()
    parts = pair.run(backward_of_features, *((*part, x.shape[-1]) for part in split(x, gamma, dy)))
    assert pair.sent == [len(x)] * 2
    dx, gains = (torch.cat(one, dim=-1) for one in zip(*parts, strict=True))
    torch.testing.assert_close(dx, expected)
    torch.testing.assert_close(gains, dgamma)


def one_message_of_sums(all_reduce, x, rank):
    """The variance from the sums of x and of its squares: one pass."""
    total, squares = all_reduce(torch.stack([x.sum(-1), (x * x).sum(-1)]))
    width = 2 * x.shape[-1]
    return squares / width - (total / width) ** 2


def two_messages(all_reduce, x, rank):
    """The variance in two passes, each with a message."""
    width = 2 * x.shape[-1]
    mean = all_reduce(x.sum(-1, keepdim=True)) / width
    return all_reduce((x - mean).square().sum(-1)) / width


def one_message_of_means(all_reduce, x, rank):
    """The variance from each half's mean and variance, merged: each process fills its place of a sum."""
    stats = torch.zeros(2, 2, len(x), dtype=x.dtype)
    stats[rank, 0], stats[rank, 1] = x.mean(-1), x.var(-1, correction=0)
    means, variances = all_reduce(stats).unbind(1)
    return variances.mean(0) + (means[0] - means[1]).square() / 4


VARIANCES = (one_message_of_sums, two_messages, one_message_of_means)
MEANS = (0.0, 1000.0, 100_000.0)


@cache
def variances():
    """The worst relative error of each way to the variance, by mean, and the numbers sent: {name: (errors, sent)}."""
    x, pair, found = torch.from_numpy(random_rows(60, 64)), sharded.pair(), {}
    for way in VARIANCES:
        errors = []
        for mean in MEANS:
            shifted = x + mean
            halves = pair.run(way, (shifted[:, :32], 0), (shifted[:, 32:], 1))
            exact = shifted.double().var(-1, correction=0)
            errors.append(float((halves[0].double() / exact - 1).abs().max()))
        found[way.__name__.replace("_", " ")] = errors, list(pair.sent)
    return found


def tabulate_variances():
    table(
        ["LayerNorm's variance from", "messages", "numbers for a token", *(f"mean {mean:,.0f}" for mean in MEANS)],
        [
            [
                way,
                len(sent),
                sum(sent) // 60,
                *("under 1 %" if e < 0.01 else "over 10 %" for e in errors),
            ]
            for way, (errors, sent) in variances().items()
        ],
    )


def prove_variances():
    """Prove claim 10-variances."""
    one, two, means = (errors for errors, _ in variances().values())
    assert one[0] < 0.01
    assert one[1] > 0.1
    assert one[2] > 100
    assert max(two + means) < 0.01
    assert [len(sent) for _, sent in variances().values()] == [1, 2, 1]
