"""Figures and proofs of deep dive 10a, Outliers and rotations."""

from dataclasses import replace
from functools import cache, partial

import numpy as np
import torch

import subnorm.numpy as sn
from subnorm_lab import chapters, figures, live, stories
from subnorm_lab.report import interval, say, table

READS = ("q", "k", "v", "gate", "up")  # the matrices that read a norm; the others write to the stream
WIDTH = 64
FEATURE = 7  # of the planted outlier
RANDOM = range(3)  # seeds of random rotations


def begin():
    chapters.begin()
    return stories.load()


def losses(model):
    return stories.losses(model, stories.beginnings())


@cache
def usual():
    """The losses of the trained model, (texts,)."""
    return losses(stories.load())


def rises(model):
    """How much the loss of each text is above that of the trained model, (texts,)."""
    return losses(model) - usual()


def quantised(x, bits, axis=-1):
    """Round to multiples of a step: one for each row, which reaches its largest number."""
    step = np.abs(x).max(axis, keepdims=True) / (2 ** (bits - 1) - 1)
    return np.round(x / step) * step


def reading(model, bits):
    """The model with so many bits for what the matrices of its branches read from the norms."""

    def quantised_norm(x, gamma, norm):
        return quantised(norm(x, gamma), bits)

    return replace(model, norms=(*(partial(quantised_norm, norm=norm) for norm in model.norms[:-1]), model.norms[-1]))


def holding(model, bits):
    """The model with so many bits for the matrices of its branches."""
    return replace(model, weights=tuple({name: quantised(w, bits) for name, w in one.items()} for one in model.weights))


def all_rounded(model, bits):
    return holding(reading(model, bits), bits)


def scores(model, text):
    return stories.logits(model, stories.stream(model, text)[-1])


def streams(model):
    return np.stack([stories.stream(model, text) for text in stories.beginnings()])  # (texts, 11, T, d)


def normed(model):
    """What the branches read, for all texts: (texts, 10, T, d)."""
    return np.stack([sn.rms_norm(streams(model)[:, k], model.gains[k]) for k in range(10)], axis=1)


def planted(model, factor):
    """The same function with an outlier: one gain of each branch's norm times a factor, its column divided by it."""
    gains, column = model.gains.copy(), np.ones(WIDTH)
    gains[:10, FEATURE] *= factor
    column[FEATURE] /= factor
    weights = tuple({name: w * column if name in READS else w for name, w in one.items()} for one in model.weights)
    return replace(model, gains=gains, weights=weights)


@cache
def hadamard(pairs=6, width=WIDTH):
    """So many stages of a Hadamard matrix: stage k mixes features 2^k apart, (x + y) / √2 and (x - y) / √2."""
    matrix = np.eye(width)
    for k in range(pairs):
        parts = matrix.reshape(width, -1, 2, 2**k)
        first, second = parts[:, :, 0], parts[:, :, 1]
        matrix = np.stack([first + second, first - second], axis=2).reshape(width, width) / np.sqrt(2)
    return matrix


@cache
def principal():
    """A rotation that makes the largest direction of the normed stream the first feature."""
    model = stories.load()
    x = normed(replace(model, gains=np.ones_like(model.gains))).reshape(-1, WIDTH)
    return np.linalg.eigh(x.T @ x)[1][:, ::-1]


def random_rotation(seed):
    q, r = np.linalg.qr(np.random.default_rng(seed).standard_normal((WIDTH, WIDTH)))
    return q * np.sign(np.diag(r))


def rotated(model, turn, folded=True):
    """The model with its stream rotated, and the gains of its branches folded into the matrices that read them.

    The last norm keeps its gain, and applies it in the old basis: the output matrix is the embedding, which has none
    of its own to fold into.
    """
    weights = tuple(
        {name: w * (gain if folded else 1.0) @ turn if name in READS else turn.T @ w for name, w in branch.items()}
        for branch, gain in zip(model.weights, model.gains, strict=False)
    )
    gains = model.gains.copy()
    if folded:
        gains[:10] = 1

    def last(x, gamma):
        return sn.rms_norm(x @ turn.T, gamma) @ turn

    embedding = model.embedding @ turn
    return replace(model, embedding=embedding, gains=gains, weights=weights, norms=(*model.norms[:10], last))


@cache
def bases():
    """The trained model in several bases: {name: model}. All compute the same function."""
    model = stories.load()
    return {
        "as trained": model,
        "gains folded": rotated(model, np.eye(WIDTH)),
        "largest direction in one feature": rotated(model, principal()),
        "Hadamard": rotated(model, hadamard()),
        "three random rotations": [rotated(model, random_rotation(seed)) for seed in RANDOM],
    }


@cache
def stages(start):
    """After each stage of mixing: the model, and how much its loss rises with 3 bits for what branches read."""
    model = stories.load()
    found = [rotated(model, start_of(start) @ hadamard(pairs)) for pairs in range(7)]
    return [(turned, rises(reading(turned, 3))) for turned in found]


def start_of(start):
    return principal() if start == "one" else np.eye(WIDTH)


def draw_stages():
    def frame(pairs, start):
        along = stages(start)
        model, rise = along[pairs]
        token = np.abs(sn.rms_norm(stories.stream(model, stories.beginnings()[0])[6, 5]))
        mixed = f"With {2**pairs} features mixed" if pairs else "With nothing mixed"
        sentence = (
            f"{mixed}, the largest entry of this token is {token.max():.1f} times its root mean square. With 3 bits "
            f"the loss rises by {rise.mean():.1f} nats."
        )
        return sentence, [
            {"token": (range(1, WIDTH + 1), token)},
            {"along": ([2**n for n in range(7)], [r.mean() for _, r in along]), "now": ([2**pairs], [rise.mean()])},
        ]

    live.chart(
        "stages",
        "The trained model, while its stream is rotated step by step",
        [
            live.slider("pairs", "features mixed", {str(2**n): n for n in range(7)}, 0, play=True),
            live.choice(
                "start",
                "begin with",
                {"the largest direction in one feature": "one", "the stream as trained": "trained"},
                "one",
            ),
        ],
        [
            live.Lines(
                live.Axis("feature", limits=(0, WIDTH + 1)),
                live.Axis("entries, over the root mean square", limits=(0, 6)),
                {"token": live.Curve("one normed token", figures.BLUE, marks="only")},
                260,
            ),
            live.Lines(
                live.Axis("features mixed", log=True, limits=(1, 64), ticks={2**n: str(2**n) for n in range(7)}),
                live.Axis("rise of the loss, 3 bits (nats)", limits=(0, 1.6)),
                {
                    "along": live.Curve("all steps", marks="too", **figures.LOOKS["theory"]),
                    "now": live.Curve("now", figures.ORANGE, marks="only"),
                },
                260,
            ),
        ],
        frame,
        "Two panels, before any mixing. Left, the 64 features of one normed token: one is near 6, most are below 1. "
        "Right, how much the loss rises with 3 bits as more features are mixed: from 1.4 nats down to 0.5.",
        side=2,
    )


def prove_stages():
    """Prove claim 10a-stages."""
    for start in ("one", "trained"):
        for model, _ in stages(start):
            assert np.abs(rises(model)).max() < 1e-12
    first, *_, last = (rise for _, rise in stages("one"))
    assert (last < first).all()  # in every text
    assert last.mean() < first.mean() - 0.7
    say("one_3_bits", first.mean(), ".1f")
    say("mixed_3_bits", last.mean(), ".1f")


def tabulate_outliers():
    model = stories.load()
    rows = []
    for name, x in (
        ("the stream, before the norms", streams(model)[:, :10]),
        ("normed, without gains", normed(replace(model, gains=np.ones_like(model.gains)))),
        ("normed, with gains: what branches read", normed(model)),
    ):
        size = np.abs(x)
        loud = np.sqrt((x**2).mean((0, 2)))  # (10, d), each feature over all tokens
        rows.append(
            [
                name,
                f"{(size.max((0, 2, 3)) / np.median(size, (0, 2, 3))).max():.0f}",
                f"{(loud.max(-1) / np.median(loud, -1)).max():.1f}",
            ]
        )
    table(["at worst, over ten norms", "largest entry, over the median", "loudest feature, over the median"], rows)


def prove_outliers():
    """Prove claims 10a-none, 10a-bound."""
    model = stories.load()
    size = np.abs(streams(model))
    ratio = size.max((0, 2, 3)) / np.median(size, (0, 2, 3))
    assert ratio.max() < 20
    assert size.max() < 100
    say("ratio", ratio.max(), ".0f")
    loud = np.sqrt((streams(model) ** 2).mean((0, 2)))
    assert (loud.max(-1) / np.median(loud, -1)).max() < 3
    first = streams(model)[:, :, 0]
    assert (first == first[0]).all()  # it sees itself alone
    for k in range(2, 7):
        assert np.unravel_index(size[:, k].argmax(), size[:, k].shape)[1:] == (0, 30)
    x = sn.rms_norm(streams(model), eps=0)
    assert np.abs(x).max() <= np.sqrt(WIDTH)
    alone = np.zeros(WIDTH)
    alone[3] = 1e6
    np.testing.assert_allclose(sn.rms_norm(alone, eps=0).max(), 8.0)


def smoothed(model, alpha):
    """SmoothQuant: divide each gain by a scale that the matrices which read it are multiplied by."""
    gains, weights = model.gains.copy(), []
    for k, (branch, read) in enumerate(zip(model.weights, np.abs(normed(model)).max((0, 2)), strict=True)):
        column = np.max([np.abs(w).max(0) for name, w in branch.items() if name in READS], axis=0)
        scale = read**alpha / column ** (1 - alpha)  # (d,)
        gains[k] /= scale
        weights.append({name: w * scale if name in READS else w for name, w in branch.items()})
    return replace(model, gains=gains, weights=tuple(weights))


def prove_smoothing():
    """Prove claims 10a-planted, 10a-smoothed."""
    model = stories.load()
    plain = rises(reading(model, 6))
    for factor in (30, 100):
        loud = planted(model, factor)
        assert np.abs(rises(loud)).max() < 1e-12
        quiet = smoothed(loud, 0.5)
        assert np.abs(rises(quiet)).max() < 1e-12
        np.testing.assert_allclose(quiet.gains, smoothed(model, 0.5).gains)
        assert np.abs(rises(all_rounded(quiet, 6))).max() < 0.1
    assert np.abs(plain).max() < 0.05
    assert (rises(reading(loud, 6)) > 3).all()
    say("planted_6_bits", rises(reading(loud, 6)).mean(), ".1f")
    at = [rises(all_rounded(smoothed(loud, alpha), 4)).mean() for alpha in (0.0, 1.0)]
    assert max(at) < 0.5


def peaks(model):
    """The largest entry of each token that a branch reads, over its root mean square."""
    x = normed(model)
    return np.abs(x).max(-1) / np.sqrt((x**2).mean(-1))


def prove_rotation():
    """Prove claims 10a-commutes, 10a-same, 10a-worst, 10a-no-gain."""
    model = stories.load()
    x = streams(model)[0, 5]
    for seed in RANDOM:
        turn = random_rotation(seed)
        np.testing.assert_allclose(turn @ turn.T, np.eye(WIDTH), atol=1e-12)
        np.testing.assert_allclose(sn.rms_norm(x @ turn), sn.rms_norm(x) @ turn, atol=1e-12)
        assert np.abs(sn.rms_norm(x @ turn, model.gains[5]) - sn.rms_norm(x, model.gains[5]) @ turn).max() > 0.1
        for text in stories.beginnings():
            expected = scores(model, text)
            np.testing.assert_allclose(scores(rotated(model, turn), text), expected, atol=1e-10)
    unfolded = rises(rotated(model, hadamard(), folded=False))
    assert (unfolded > 0.1).all()
    found = bases()
    worst = {name: peaks(found[name]).max() for name in ("as trained", "gains folded", "Hadamard")}
    assert worst["Hadamard"] < 0.75 * min(worst["as trained"], worst["gains folded"])
    say("worst_trained", worst["as trained"], ".1f")
    say("worst_mixed", worst["Hadamard"], ".1f")
    four = {name: rises(all_rounded(found[name], 4)) for name in ("as trained", "gains folded", "Hadamard")}
    assert (four["gains folded"] > four["Hadamard"]).mean() > 0.8
    assert abs(four["Hadamard"].mean() - four["as trained"].mean()) < four["as trained"].std()
    say("trained_4_bits", four["as trained"].mean(), ".1f")
    say("folded_4_bits", four["gains folded"].mean(), ".1f")
    say("mixed_4_bits", four["Hadamard"].mean(), ".1f")


def tabulate_bases():
    def cells(found):
        models = found if isinstance(found, list) else [found]
        rows = [
            (
                peaks(one).max(),
                *(rises(change(one, n)).mean() for change, n in ((reading, 4), (reading, 3), (all_rounded, 4))),
            )
            for one in models
        ]
        return [interval(at) if len(at) > 1 else f"{at[0]:.2f}" for at in zip(*rows, strict=True)]

    table(
        [
            "basis of the stream",
            "largest entry read",
            "rise of the loss (nats): inputs in 4 bits",
            "inputs in 3 bits",
            "inputs and matrices in 4 bits",
        ],
        [[name, *cells(found)] for name, found in bases().items()],
    )


E4M3 = torch.float8_e4m3fn
LIMIT = torch.finfo(E4M3).max  # 448


def fp8(x, scaled=True):
    """Round to float8 (E4M3), saturating; scaled so that the largest entry just fits, or as it comes."""
    scale = LIMIT / np.abs(x).max() if scaled else 1.0
    kept = torch.from_numpy(np.clip(x * scale, -LIMIT, LIMIT)).to(E4M3)
    return kept.double().numpy() / scale


def fp8_norm(x, gamma, loud=1.0):
    """RMSNorm that adds its squares in float8, one after the other, of a stream `loud` times as large."""
    x = x * loud
    total = np.zeros(x.shape[:-1])
    for square in np.moveaxis(fp8(x * x, scaled=False), -1, 0):
        total = fp8(total + square, scaled=False)
    return x / np.sqrt(total[..., None] / x.shape[-1] + 1e-5) * gamma


def fp8_place(x, sublayer, norm):
    return fp8(x + sublayer(norm(x)))


def fp8_models():
    """The trained model with one part in float8: {name: model}."""
    model = stories.load()
    read = (*((lambda x, gamma: fp8(sn.rms_norm(x, gamma))),) * 10, model.norms[-1])
    weights = tuple({name: fp8(w) for name, w in one.items()} for one in model.weights)
    return {
        "the branches' matrices": replace(model, weights=weights),
        "the inputs of these matrices": replace(model, norms=read),
        "both: the matrix products": replace(model, weights=weights, norms=read),
        "the stream, after every branch": stories.altered(model, place=fp8_place),
        "the norms' sums of squares": stories.altered(model, norm=fp8_norm),
        "these sums, for a stream 10 times as large": stories.altered(model, norm=partial(fp8_norm, loud=10.0)),
    }


@cache
def fp8_rises():
    return {name: rises(model) for name, model in fp8_models().items()}


def tabulate_fp8():
    def shown(rise):
        return "worse than guessing" if rise.min() > np.log(512) else interval(rise)

    table(
        ["in float8 (E4M3)", "rise of the loss, twelve texts (nats)"],
        [[name, shown(rise)] for name, rise in fp8_rises().items()],
    )


def prove_fp8():
    """Prove claim 10a-fp8."""
    *fine, squares, loud = fp8_rises().values()
    assert np.abs(streams(stories.load())).max() < 12
    for rise in fine:
        assert np.abs(rise).max() < 0.06
    assert squares.mean() > 0.05
    assert squares.max() > 0.2
    assert loud.min() > np.log(512)
    assert fp8(np.array([21.0**2, 22.0**2]), scaled=False).tolist() == [448.0, 448.0]
    assert fp8(np.array([1.06, 1.07]), scaled=False).tolist() == [1.0, 1.125]
    say("squares_mean", squares.mean(), ".1f")


def prove_centred():
    """Prove claim 10a-centred."""
    x = np.random.default_rng(0).standard_normal((5, WIDTH)) + 1
    centred = x - x.mean(-1, keepdims=True)
    np.testing.assert_allclose(sn.layer_norm(x), sn.rms_norm(centred), atol=1e-12)
    for seed in RANDOM:
        turn = random_rotation(seed)
        np.testing.assert_allclose(sn.rms_norm(centred @ turn), sn.layer_norm(x) @ turn, atol=1e-12)
        assert np.abs(sn.layer_norm(x @ turn) - sn.layer_norm(x) @ turn).max() > 0.1
    # every writer's output has mean zero if the mean is taken off its matrix, over the outputs
    w, h = np.random.default_rng(1).standard_normal((2, WIDTH, WIDTH))
    centre = w - w.mean(0)
    np.testing.assert_allclose((h @ centre.T).mean(-1), 0, atol=1e-12)
    np.testing.assert_allclose(h @ centre.T, h @ w.T - (h @ w.T).mean(-1, keepdims=True), atol=1e-12)


def prove_gain_in_bfloat16():
    """Prove claim 10a-lost-steps."""
    gain = torch.ones((), dtype=torch.bfloat16)
    for _ in range(1000):
        gain = gain + torch.tensor(0.001, dtype=torch.bfloat16)
    assert gain == 1
    step = torch.tensor(1.0, dtype=torch.bfloat16)
    assert torch.nextafter(step, torch.tensor(2.0, dtype=torch.bfloat16)) == 1 + 2**-7
    norm = torch.nn.RMSNorm(8, dtype=torch.float32)
    x = torch.ones(3, 8, dtype=torch.bfloat16)
    assert (norm.weight * x).dtype == torch.float32
