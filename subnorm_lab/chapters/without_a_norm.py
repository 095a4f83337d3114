"""Figures and proofs of deep dive 10d, Without a norm."""

from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from subnorm_lab import chapters, figures, live, stories
from subnorm_lab.report import interval, say, table
from subnorm_lab.stories.torch import Stories

SEEDS = range(3)
NORMS = 11


def begin():
    chapters.begin()
    return stories.load()


@cache
def token_sizes():
    """The root mean square of each token where a norm reads it, (11, N)."""
    model, texts = stories.load(), stories.texts()
    x = np.concatenate([stories.stream(model, text[:-1]) for text in texts], axis=1)
    return np.sqrt((x**2).mean(axis=-1))


@cache
def constants():
    """What each norm divides by if it divides all tokens by one number, (11,)."""
    return np.sqrt((token_sizes() ** 2).mean(axis=1))


def constant_norm(size):
    """A norm that divides every token by the same number."""
    return lambda x, gamma: x / size * gamma


def brake(size):
    """A norm that divides by a token's own size, and at least by this number."""
    return lambda x, gamma: x / np.maximum(np.sqrt((x**2).mean(axis=-1, keepdims=True)), size) * gamma


def no_brake(size):
    """A norm that divides by a token's own size, and at most by this number."""
    return lambda x, gamma: x / np.minimum(np.sqrt((x**2).mean(axis=-1, keepdims=True)), size) * gamma


def loss_with(make, times=1.0):
    """The loss of the trained model, each norm of which is made from its constant, or from so many times it."""
    model = stories.load()
    for k in range(NORMS):
        model = stories.altered(model, norm=make(times * constants()[k]), at=[k])
    return stories.losses(model, stories.texts()).mean()


@cache
def frozen(*norms):
    """The trained model in which these norms divide by constants."""
    model = stories.load()
    for k in norms:
        model = stories.altered(model, norm=constant_norm(constants()[k]), at=[k])
    return model


@cache
def losses(*norms):
    return stories.losses(frozen(*norms), stories.texts())


@cache
def stream_sizes(count):
    model = frozen(*range(count))
    x = np.concatenate([stories.stream(model, text) for text in stories.beginnings()[:4]], axis=1)
    return np.sqrt((x**2).mean(axis=(1, 2)))


def draw_frozen():
    def frame(count):
        story = stories.generate(frozen(*range(count)), tokens=12).strip()
        loss = losses(*range(count)).mean()
        return (
            f"{count} of 11 norms divide by a constant, and the loss is {live.number(loss)} nats. It says: {story}…",
            [{"whole": (range(NORMS), stream_sizes(0)), "frozen": (range(NORMS), stream_sizes(count))}],
        )

    live.chart(
        "frozen",
        "The trained model, while more and more of its norms, from the first on, divide by a constant",
        [live.slider("count", "norms with a constant", range(NORMS + 1), 7, play=True)],
        [
            live.Lines(
                live.Axis("sublayer"),
                live.Axis("root mean square of the stream", log=True, limits=(0.1, 100_000)),
                {
                    "whole": live.Curve("all norms at work", **figures.LOOKS["theory"]),
                    "frozen": live.Curve("with constants", figures.ORANGE),
                },
                260,
            )
        ],
        frame,
        alt="Two curves on a logarithmic axis: the size of the stream over ten sublayers. With all norms at work it "
        "grows from a quarter to one and a half. With constants in seven norms it jumps to more than six.",
    )


def prove_frozen():
    """Prove claims 10d-one, 10d-all, 10d-brake, 10d-spread."""
    whole = losses().mean()
    one = [losses(k).mean() - whole for k in range(NORMS)]
    assert min(one) > 0
    say("whole", whole)
    say("one_least", min(one), ".3f")
    say("one_most", max(one))
    assert sum(one) < 1 < losses(*range(5)).mean()
    say("one_sum", sum(one), ".1f")
    say("five", losses(*range(5)).mean(), ".1f")
    assert stream_sizes(10)[-1] > 1000 * stream_sizes(0)[-1]
    say("all", losses(*range(NORMS)).mean(), ",.0f")
    braked, unbraked, larger = loss_with(brake), loss_with(no_brake), loss_with(constant_norm, 1.25)
    assert braked < whole + 1 < larger < np.log(512) < 1000 < unbraked
    say("brake", braked, ".1f")
    say("no_brake", unbraked, ",.0f")
    say("quarter_more", larger, ".1f")
    spread = token_sizes() / constants()[:, None]
    say("smallest", spread.min(), ".1f")
    say("largest", spread.max(), ".1f")


class Constant(nn.Module):
    """A norm's gain, and division by one number."""

    def __init__(self, norm, size):
        super().__init__()
        self.weight, self.size = norm.weight, size

    def forward(self, x):
        return x / self.size * self.weight


STEPS, BATCH, LENGTH = 22, 4, 48
# The gradients of "never" are rounding errors. Adam's own eps, 1e-8, makes steps of them, other ones on each processor.
ADAM = {"lr": 1e-3, "eps": 1e-3}


@cache
def lessons():
    """Texts that the trained model tells, (n, 48), and its probabilities of the next token, (n, 48, 512)."""
    model = stories.load()
    told = [
        [stories.BOS, *stories.continuation(model, [stories.BOS], LENGTH - 1, 1.0, 1000 + seed)] for seed in range(32)
    ]
    tokens = torch.tensor([text for text in told if len(text) == LENGTH])
    with torch.no_grad():
        return tokens, Stories(model)(tokens).softmax(dim=-1)


@cache
def healed(way):
    """The loss after 22 steps of Adam that learn the whole model's probabilities, (seeds,), of a model without norms.

    Args:
        way: "never", all norms stay; "at once", all go before the first step; "in turn", one every other step.
    """
    tokens, target = lessons()
    found = []
    for seed in SEEDS:
        g = torch.Generator().manual_seed(seed)
        student = Stories(stories.load())
        adam = torch.optim.Adam(student.parameters(), **ADAM)
        for step in range(STEPS):
            for k in range(NORMS):
                if (way == "at once" and step == 0) or (way == "in turn" and step == 2 * k):
                    student.norms[k] = Constant(student.norms[k], float(constants()[k]))
            batch = torch.randperm(len(tokens), generator=g)[:BATCH]
            loss = F.cross_entropy(student(tokens[batch]).flatten(0, 1), target[batch].flatten(0, 1))
            adam.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(student.parameters(), 1.0)
            adam.step()
        with torch.no_grad():
            found.append(np.mean([student.loss(torch.tensor(text)).item() for text in stories.texts()]))
    return np.array(found)


WAYS = {"never": "all norms stay", "at once": "all go at once", "in turn": "one goes every other step"}


def tabulate_healed():
    before = {"never": losses().mean(), "at once": losses(*range(NORMS)).mean(), "in turn": losses().mean()}
    table(
        ["22 steps, three seeds", "loss before", "loss after"],
        [[label, f"{before[way]:,.1f}", interval(healed(way), ".2f")] for way, label in WAYS.items()],
    )


def prove_healed():
    """Prove claim 10d-heal."""
    kept, at_once, in_turn = (healed(way) for way in WAYS)
    np.testing.assert_allclose(kept, losses().mean(), atol=1e-3)
    for found in (at_once, in_turn):
        assert (found > kept + 0.5).all()
        assert found.max() < 2
    assert np.abs(in_turn - at_once).max() < 0.2


def trained_layer(seed=0):
    """A convolution, its BatchNorm after a few batches, and a new batch whose pixels have another mean."""
    torch.manual_seed(seed)
    conv, norm = nn.Conv2d(3, 8, 3).double(), nn.BatchNorm2d(8).double()
    nn.init.uniform_(norm.weight, 0.5, 2)
    nn.init.normal_(norm.bias)
    with torch.no_grad():
        for _ in range(20):
            norm(conv(1 + torch.randn(4, 3, 8, 8, dtype=torch.float64)))
    return conv.requires_grad_(False), norm.requires_grad_(False), 2 + torch.randn(4, 3, 8, 8, dtype=torch.float64)


def prove_fold(fold):
    """Prove claims 10d-fold, 10d-token."""
    for seed in SEEDS:
        conv, norm, x = trained_layer(seed)
        assert conv.bias.abs().max() > 0.01  # a fold that drops it fails below
        assert (fold(conv, norm)(x) - norm.eval()(conv(x))).abs().max() < 1e-12
        assert (fold(conv, norm)(x) - norm.train()(conv(x))).abs().max() > 0.1
        x = torch.randn(100, 8, dtype=torch.float64)  # LayerNorm is no linear map: twice the token, the same output
        norm = nn.LayerNorm(8, eps=0, dtype=torch.float64)
        torch.testing.assert_close(norm(2 * x), norm(x))


def layer(seed=0, units=64, inputs=256):
    """A weight matrix of a layer, and what a ReLU leaves of random inputs, (1000, inputs)."""
    random = np.random.default_rng(seed)
    return random.standard_normal((units, inputs)) * (2 / inputs) ** 0.5, np.maximum(
        random.standard_normal((1000, inputs)), 0
    )


def prove_standardised(standardised):
    """Prove claims 10d-standardised, 10d-relu."""
    for seed in SEEDS:
        W, x = layer(seed)
        S = standardised(W)
        np.testing.assert_allclose(S.sum(axis=1), 0, atol=1e-12)
        np.testing.assert_allclose((S**2).sum(axis=1), 1)
        np.testing.assert_allclose(standardised(10 * W), S)
        plain, found = (x @ M.T for M in (W, S))
        assert plain.mean(axis=0).std() > 0.3
        assert np.abs(found.mean(axis=0)).max() < 0.1
        np.testing.assert_allclose(found.var(), x.var(), rtol=0.05)
    left = (1 - 1 / np.pi) / 2
    np.testing.assert_allclose(layer(inputs=1000)[1].var(), left, rtol=0.01)
    say("relu_leaves", left)
    say("relu_gain", left**-0.5)


def prove_clipped(clipped):
    """Prove claim 10d-clipped."""
    for seed in SEEDS:
        W, _ = layer(seed)
        size = np.logspace(-4, 2, len(W))[:, None]
        gradient = size * np.random.default_rng(seed).standard_normal(W.shape)
        g = clipped(gradient, W, 0.01)
        before, after = (np.linalg.norm(one, axis=1) / np.linalg.norm(W, axis=1) for one in (gradient, g))
        assert (after <= 0.01 * (1 + 1e-9)).all()
        np.testing.assert_array_equal(g[before <= 0.01], gradient[before <= 0.01])
        np.testing.assert_allclose(g / after[:, None], gradient / before[:, None])
        np.testing.assert_allclose(clipped(gradient * 1e6, W, 0.01)[-1], g[-1])
    assert (np.linalg.norm(clipped(gradient, 0 * W, 0.01), axis=1) > 0).all()  # a zero unit may still leave zero
