"""Figures and proofs of deep dive 10c, Cut and looped."""

import itertools
from functools import cache

import numpy as np
import torch
import torch.nn.functional as F

from subnorm.torch.placements import STACK_PLACEMENTS, Sandwich
from subnorm_lab import chapters, figures, live, stories
from subnorm_lab.experiments import stack
from subnorm_lab.report import interval, say, table

WHOLE = (1, 2, 3, 4, 5)
SEEDS = range(5)


def begin():
    chapters.begin()
    return stories.load()


@cache
def losses(*blocks):
    """The loss of the model that runs these blocks, for each text, (12,)."""
    return stories.losses(stories.arranged(stories.load(), blocks), stories.texts())


def without(*gone):
    return tuple(block for block in WHOLE if block not in gone)


def repeated(block, times):
    """All blocks once, but one of them several times, or never."""
    return tuple(b for b in WHOLE for _ in range(times if b == block else 1))


def cost(*gone):
    """The nats that a text costs more without these blocks, (12,)."""
    return losses(*without(*gone)) - losses(*WHOLE)


TIMES = (0, 1, 2, 3, 4)
HOW_OFTEN = {0: "is left out", 1: "runs once, as in training", 2: "runs twice"}


def draw_times():
    model = stories.load()

    def frame(times):
        rows = []
        for block in WHOLE:
            blocks = repeated(block, times)
            loss = losses(*blocks).mean()
            story = stories.generate(stories.arranged(model, blocks), tokens=24).strip()[:34].rstrip() + " …"
            rows.append((str(block), story, loss, loss < losses(*without(block)).mean()))
        low, high = (live.number(bound(row[2] for row in rows)) for bound in (min, max))
        reached = f"{low} nats" if low == high else f"{low} to {high} nats"
        often = HOW_OFTEN.get(times, f"runs {times} times")
        return f"If one block {often} and the other four run once, the loss is {reached}.", [rows]

    live.chart(
        "times",
        "A trained model of five blocks, one of which runs more or fewer times; loss in nats, mean of twelve "
        "texts. ✓ less than without the block",
        [live.slider("times", "the block runs … times", TIMES, 3, play=True)],
        [live.Bars("block and story; bar: loss (shorter is better)", 5, full=6.5)],
        frame,
        alt="Five bars, one for each block, which runs three times. Each is about a quarter full and has a check "
        "mark. Two stories stammer: once upon upon upon.",
    )


def prove_times():
    """Prove claim 10c-times."""
    whole = losses(*WHOLE).mean()
    twice = [losses(*repeated(block, 2)).mean() - whole for block in WHOLE]
    gone = [cost(block).mean() for block in WHOLE]
    assert max(twice) < min(gone) / 3
    for block in WHOLE:
        rising = [losses(*repeated(block, times)).mean() for times in TIMES[1:]]
        assert all(a < b for a, b in itertools.pairwise(rising))
        assert rising[2] < losses(*without(block)).mean()
        assert (rising[3] < losses(*without(block)).mean()) == (block == 1)
    say("whole", whole)
    say("twice_low", min(twice))
    say("twice_high", max(twice))
    say("gone_low", min(gone), ".1f")
    say("gone_high", max(gone), ".1f")


@cache
def streams():
    model, texts = stories.load(), stories.texts()
    return [stories.stream(model, text[:-1]) for text in texts]


def influences(influence, streams, step=2):
    """The score of each block, or with step 1 of each sublayer, in each text, (blocks, texts)."""
    return np.array([[influence(x[k], x[k + step]) for x in streams] for k in range(0, 10, step)])


def tabulate_influence(influence):
    scores = influences(influence, streams())
    table(
        ["block", "1 − cosine", "rise of the loss without it (nats)"],
        [
            [b, f"{s.mean():.2f} ({interval(s)})", f"{cost(b).mean():.1f} ({interval(cost(b), '.1f')})"]
            for b, s in zip(WHOLE, scores, strict=True)
        ],
    )


def prove_influence(influence):
    """Prove claims 10c-one, 10c-two, 10c-again, 10c-kinds."""
    scores = influences(influence, streams())
    score = dict(zip(WHOLE, scores.mean(axis=1), strict=True))
    costs = {block: cost(block).mean() for block in WHOLE}
    first, second = sorted(WHOLE, key=score.get)[:2]
    assert first == min(costs, key=costs.get) == 3
    assert sorted(WHOLE, key=score.get) == [3, 4, 2, 5, 1]
    assert sorted(WHOLE, key=costs.get) == [3, 4, 5, 2, 1]
    assert min(costs.values()) > 0.5  # none is free
    agree = scores.argmin(axis=0) == np.argmin([cost(block) for block in WHOLE], axis=0)
    say("agree", agree.sum(), ".0f")
    pairs = {pair: cost(*pair).mean() for pair in itertools.combinations(WHOLE, 2)}
    ranked = sorted(pairs, key=pairs.get)
    assert ranked[0] == (3, 5)
    assert ranked.index((first, second)) == 4
    say("pair_best", pairs[3, 5], ".1f")
    say("pair_scored", pairs[3, 4], ".1f")
    say("pair_sum", costs[3] + costs[4], ".1f")
    for a, b in itertools.pairwise(WHOLE):
        assert pairs[a, b] > costs[a] + costs[b] + 0.5
    model, texts = stories.load(), stories.texts()
    cut = stories.altered(model, place=stories.leave_out, at=[4, 5])
    again = influences(influence, [stories.stream(cut, text[:-1]) for text in texts]).mean(axis=1)
    rest = {block: again[block - 1] for block in without(3)}
    assert min(rest, key=rest.get) == 2
    assert pairs[2, 3] > pairs[3, 5] + 0.5
    say("pair_again", pairs[2, 3], ".1f")
    turn = influences(influence, streams(), step=1).mean(axis=1)  # of sublayers
    cuts = [stories.altered(model, place=stories.leave_out, at=[k]) for k in range(10)]
    dear = np.array([stories.losses(one, texts).mean() - losses(*WHOLE).mean() for one in cuts])
    ranks = [np.argsort(np.argsort(one)) for one in (turn, dear)]
    assert abs(turn[9] / turn[0] - 1) < 0.1
    assert dear[9] > 2 * dear[0]
    assert np.corrcoef(ranks)[0, 1] > 0.7
    say("rank_correlation", np.corrcoef(ranks)[0, 1], ".1f")
    say("attention_turns", turn[0])
    say("feed_forward_turns", turn[9])
    say("attention_costs", dear[0])
    say("feed_forward_costs", dear[9])


class NormOnSum(Sandwich):
    """``x = norm'(x + F(norm(x)))``, the block of Huginn.

    Source: Geiping et al. 2025, arXiv:2502.05171; recpre/raven_modeling_minimal.py, ``SandwichBlock``.
    """

    def step(self, x, branch, k):
        return self.outer_norms[k](x + branch(self.norms[k](x)))


LOOPS = 64
PLACED = {**STACK_PLACEMENTS, "norm_on_sum": NormOnSum}
RMS_NORM = stack.BUILT_IN["rms"]


@cache
@torch.no_grad()
def run_loops(placement, looped, seed):
    """The stream before and after each of 64 blocks, untrained: of one block 64 times, or of 64 blocks."""
    g = torch.Generator().manual_seed(seed)
    made = stack.draw(PLACED[placement](64, 1 if looped else LOOPS, RMS_NORM), 4, g)
    states = [stack.random_tokens(torch.Generator().manual_seed(100 + seed))]
    branches = made.branches(stack.causal_mask(states[0].shape[-2]))
    for loop in range(LOOPS):
        x = states[-1]
        for k in (0, 1) if looped else (2 * loop, 2 * loop + 1):
            x = made.placement.step(x, branches[k], k)
        states.append(x)
    return torch.stack(states)


def rms(x):
    return x.square().mean(dim=(-3, -2, -1)).sqrt()


@cache
def sizes(placement, looped):
    """The root mean square of the stream, (seeds, 65)."""
    return np.array([rms(run_loops(placement, looped, seed)).numpy() for seed in SEEDS])


@cache
def scores(placement, looped=False):
    """1 - cosine over each block, (seeds, 64)."""
    states = [run_loops(placement, looped, seed) for seed in SEEDS]
    return np.array([1 - F.cosine_similarity(s[1:], s[:-1], dim=-1).mean(dim=(1, 2)).numpy() for s in states])


def prove_curse():
    """Prove claims 10c-curse, 10c-scaling, 10c-trained."""
    law = 1 / (2 * np.arange(1, LOOPS + 1))
    for name in ("pre", "sandwich"):
        found = scores(name)
        assert (np.abs((found / law)[:, 32:].mean(axis=1) - 1) < 0.2).all()
        assert (found[:, 0] > 10 * found[:, -1]).all()
    assert (sizes("sandwich", False)[:, -1] > 1.5 * sizes("pre", False)[:, -1]).all()
    assert (scores("layernorm_scaling")[:, -1] < scores("pre")[:, -1] / 3).all()
    assert (scores("post")[:, -1] > scores("post")[:, 0]).all()
    step = np.array(
        [np.linalg.norm(x[2::2] - x[:-1:2], axis=-1) / np.linalg.norm(x[:-1:2], axis=-1) for x in streams()]
    )
    share = step.mean(axis=(0, 2))
    assert share[0] > share[1] > share[2]
    assert min(share[3:]) > share[2] > 0.5
    say("share_first", share[0], ".1f")
    say("share_least", share[2], ".2f")
    say("share_last", share[4], ".2f")


@cache
def guesses(final_norm=True):
    """What the model would say after 0 to 5 blocks: probabilities, (6, N, 512), for the tokens of all texts."""
    model = stories.load()
    x = np.concatenate([states[::2] for states in streams()], axis=1)  # (6, N, d)
    score = stories.logits(model, x) if final_norm else x @ model.embedding.T
    score = np.exp(score - score.max(axis=-1, keepdims=True))
    return score / score.sum(axis=-1, keepdims=True)


def early(final_norm):
    """The loss after 0 to 5 blocks, and the share of tokens that the whole model would say, too."""
    p = guesses(final_norm)
    target = np.concatenate([text[1:] for text in stories.texts()])
    lost = -np.log(p[:, np.arange(len(target)), target]).mean(axis=1)
    return lost, (p.argmax(-1) == guesses()[-1].argmax(-1)).mean(axis=1)


def tabulate_exits():
    (lost, same), (raw_lost, raw_same) = early(True), early(False)
    table(
        ["read after", "same token as the whole model", "loss", "same token, no final norm", "loss, no final norm"],
        [
            [
                f"block {k}" if k else "the embedding",
                f"{same[k]:.0%}",
                f"{lost[k]:.1f}",
                f"{raw_same[k]:.0%}",
                f"{raw_lost[k]:.1f}",
            ]
            for k in range(6)
        ],
    )


def prove_exits():
    """Prove claims 10c-exit, 10c-loud, 10c-sure."""
    (lost, same), (raw_lost, raw_same) = early(True), early(False)
    assert (same[1:5] > raw_same[1:5]).all()
    assert (raw_lost[:4] < lost[:4]).all()
    assert raw_lost[0] < np.log(512) < lost[1]
    assert 0.8 < raw_same[5] < 0.9
    read = np.concatenate([text[:-1] for text in stories.texts()])
    assert (guesses()[1].argmax(-1) == read).mean() > 0.95
    likely = guesses().max(-1)
    at = guesses().argmax(-1)
    for first in (3, 4):
        leaves = likely > 0.9
        leaves[:first], leaves[5] = False, True
        after = leaves.argmax(axis=0)
        alike = at[after, np.arange(len(after))] == at[5]
        assert 0.85 < alike.mean() < 1
        assert alike[after < 5].mean() < 0.9
        assert 4.5 < after.mean() < 5
        say(f"right_from_{first}", 100 * alike[after < 5].mean(), ".0f")
    assert (likely[1] > 0.9).mean() > 0.8
    say("same_after_4", 100 * same[4], ".0f")
    say("raw_after_4", 100 * raw_same[4], ".0f")
    say("raw_after_5", 100 * raw_same[5], ".0f")
    say("loud", lost[1], ".0f")
    say("quiet", raw_lost[1], ".1f")
    say("sure_after_1", 100 * guesses()[1].max(-1).mean(), ".0f")
    say("repeats_after_1", 100 * (guesses()[1].argmax(-1) == read).mean(), ".0f")


SHOWN = {
    "pre": live.Curve("Pre-LN", **figures.LOOKS["pre"]),
    "sandwich": live.Curve("a norm on the branch, too", figures.PINK, "-."),
    "norm_on_sum": live.Curve("a norm on the sum, too", figures.GREEN, ":"),
}


def draw_loops():
    def frame(looped):
        at = np.arange(LOOPS + 1)
        ends = [live.number(np.median(sizes(name, looped)[:, -1])) for name in SHOWN]
        return (
            f"After {'64 runs of one block' if looped else '64 blocks, each run once'}, the root mean square is "
            f"{ends[0]} with Pre-LN, {ends[1]} with a second norm on the branch, and {ends[2]} with one on the sum.",
            [
                {name: (at, sizes(name, looped)) for name in SHOWN},
                {name: (at[1:], scores(name, looped)) for name in SHOWN},
            ],
        )

    live.chart(
        "loops",
        "The stream through 64 untrained blocks of 64 features, or through one block 64 times: median and range of "
        "five seeds",
        [live.choice("looped", "run", {"64 blocks, each once": False, "one block, 64 times": True}, True)],
        [
            live.Lines(live.Axis("block or loop"), live.Axis("root mean square", limits=(0, 90)), SHOWN, 260),
            live.Lines(live.Axis("block or loop"), live.Axis("1 − cosine", log=True, limits=(1e-7, 1)), SHOWN, 260),
        ],
        frame,
        alt="Two panels for one block, run 64 times. Left, the root mean square of the stream: with Pre-LN it rises in "
        "a straight line to about fifty, with a norm on the branch beyond eighty; with a norm on the sum it stays at "
        "one. Right, one minus the cosine: all three fall to less than a thousandth.",
        side=2,
    )


def prove_loops():
    """Prove claims 10c-grow, 10c-same-way, 10c-sandwich, 10c-sum, 10c-still, 10c-trained-loop."""
    once = {name: np.median(sizes(name, False)[:, -1]) for name in SHOWN}
    many = {name: np.median(sizes(name, True)[:, -1]) for name in SHOWN}
    say("once_pre", once["pre"], ".0f")
    say("many_pre", many["pre"], ".0f")
    say("many_branch", many["sandwich"], ".0f")
    say("own_doubles", (sizes("pre", False)[:, 64] / sizes("pre", False)[:, 32]).mean(), ".1f")
    say("loop_doubles", (sizes("pre", True)[:, 64] / sizes("pre", True)[:, 32]).mean(), ".1f")
    for name in ("pre", "sandwich"):
        own, loop = (sizes(name, looped) for looped in (False, True))
        assert abs((own[:, 64] / own[:, 32]).mean() - 2**0.5) < 0.1
        assert abs((loop[:, 64] / loop[:, 32]).mean() - 2) < 0.2
        assert (own[:, 64] / own[:, 32]).max() < 1.7 < 1.9 < (loop[:, 64] / loop[:, 32]).min()
    assert (sizes("sandwich", True)[:, -1] > sizes("pre", True)[:, -1] + 20).all()
    for seed in SEEDS:
        for looped in (False, True):
            writes = run_loops("pre", looped, seed).diff(dim=0)
            alike = F.cosine_similarity(writes[1:], writes[:-1], dim=-1).mean(dim=(1, 2))
            assert (alike[8:] > 0.99).all() if looped else (alike.abs() < 0.3).all()
    for looped in (False, True):
        for name in ("post", "norm_on_sum"):
            np.testing.assert_allclose(sizes(name, looped)[:, 1:], 1, atol=1e-4)
    moves = scores("norm_on_sum", True)
    assert (moves[:, -1] < 1e-4).sum() == 3
    assert (moves[:, -1] > 1e-3).sum() == 2
    model, texts = stories.load(), stories.texts()
    grown = []
    for block in WHOLE:
        looped = stories.arranged(model, [*range(1, block), *[block] * LOOPS])
        x = np.concatenate([stories.stream(looped, text[:40]) for text in texts[:4]], axis=1)[::2]
        size = np.sqrt((x**2).mean(axis=(1, 2)))
        grown.append(size[-1] / size[block - 1])
        assert size[-1] > 1.7 * size[block - 1 + LOOPS // 2]
    say("trained_low", min(grown), ".0f")
    say("trained_high", max(grown), ".0f")


def untrained_block(seed=0):
    """Attention and feed-forward of an untrained block as functions, and random tokens, (4, 32, 64)."""
    made = stack.untrained("pre", 1, torch.Generator().manual_seed(seed)).requires_grad_(False)
    x = stack.random_tokens(torch.Generator().manual_seed(100 + seed))
    return made.branches(stack.causal_mask(x.shape[-2])), x
