"""Figures and proofs of deep dive 07b, The attention logits."""

import math
from functools import cache, partial

import torch
import torch.nn.functional as F

import subnorm.torch as st
from subnorm_lab import figures, live
from subnorm_lab.chapters import begin as begin
from subnorm_lab.experiments import attention_logits as al
from subnorm_lab.experiments.after_pre_ln import Movable, at_start
from subnorm_lab.report import interval, say, table

SEEDS = range(5)
QUERIES, KEYS = 6, 12


def generator(seed):
    return torch.Generator().manual_seed(seed)


def head(seed):
    """What queries and keys are made of, and the weights of one head, untrained."""
    g = generator(seed)
    parts = [torch.randn(n, al.D_MODEL, generator=g, dtype=torch.float64) for n in (QUERIES, KEYS)]
    weights = [
        torch.randn(al.D_MODEL, al.D_HEAD, generator=g, dtype=torch.float64) / math.sqrt(al.D_MODEL) for _ in range(2)
    ]
    return *parts, *weights


def grown(remedy, factor, seed=0, sink=0.0):
    """The logits and the attention weights of a head with both matrices multiplied by a factor."""
    x_q, x_k, w_q, w_k = head(seed)
    gains = tuple(torch.linalg.matrix_norm(w, 2) for w in (w_q, w_k)) if remedy == "sigma_reparam" else None
    logits = al.head_logits(x_q, x_k, factor * w_q, factor * w_k, remedy, gains)
    if remedy == "qk_clip":
        clip = al.clip_factor(logits.max())
        logits = al.head_logits(x_q, x_k, clip * factor * w_q, clip * factor * w_k)
    nowhere = torch.tensor(sink).double() if remedy == "sink" else None
    return logits, al.attention_weights(logits, nowhere)


NAMES = {
    "none": "nothing",
    "qk_norm": "QK-norm",
    "sigma_reparam": "σReparam",
    "soft_cap": "soft-cap at 50",
    "qk_clip": "QK-Clip at 100",
    "sink": "a sink",
    "gate": "an output gate",
}

FACTORS = (1, 2, 4, 8, 16, 32, 64)


def growing(factor, remedy):
    logits, weights = grown(remedy, factor)
    largest = {name: [grown(name, f)[0].max().item() for f in FACTORS] for name in ("none", remedy)}
    now = logits.max().item()
    one = weights.max(dim=-1).values.median().item()
    sentence = (
        f"With weights × {factor} and {'no remedy' if remedy == 'none' else NAMES[remedy]}, the largest logit is "
        f"{live.number(now)}, and half of the queries give one key more than {math.floor(100 * one - 1e-9)} % of "
        "their attention."
    )
    return sentence, [
        {"none": (FACTORS, largest["none"]), "this": (FACTORS, largest[remedy]), "now": ([factor], [now])},
        weights.numpy(),
    ]


def draw_growing():
    live.chart(
        "growing-weights",
        "One untrained head whose query and key weights grow together, under each remedy",
        [
            live.slider("factor", "weights ×", FACTORS, 8, play=True),
            live.choice("remedy", "remedy", {NAMES[k]: k for k in al.REMEDIES if k != "gate"}, "none"),
        ],
        [
            live.Lines(
                live.Axis("weights ×", log=True, limits=(1, 64), ticks={k: str(k) for k in FACTORS}),
                live.Axis("largest logit", log=True, limits=(1, 20_000)),
                {
                    "none": live.Curve("with nothing", **figures.LOOKS["theory"]),
                    "this": live.Curve("with this remedy", figures.BLUE, marks="too"),
                    "now": live.Curve("now", figures.ORANGE, marks="only"),
                },
                260,
            ),
            live.Heat(
                "attention of six queries to twelve keys",
                live.Axis("key"),
                ["query 1", "", "", "", "", "query 6"],
                ["1", *[""] * 10, "12"],
                (0, 1),
                height=260,
            ),
        ],
        growing,
        "Two panels, with no remedy and weights multiplied by 8. Left, the largest logit by the factor of the "
        "weights: it grows with the square. Right, the attention of six queries to twelve keys: five rows "
        "have one dark cell each, one has two lighter cells, and all other cells are empty.",
        side=2,
    )


def prove_growing():
    """Prove claim 07b-grow."""
    for seed in SEEDS:
        plain, double = (grown("none", f, seed)[0] for f in (1, 2))
        torch.testing.assert_close(double, 4 * plain)
        for factor in FACTORS:
            logits = {name: grown(name, factor, seed)[0] for name in NAMES if name != "gate"}
            assert logits["soft_cap"].abs().max() <= al.CAP
            assert logits["qk_norm"].abs().max() <= math.sqrt(al.D_HEAD)
            torch.testing.assert_close(logits["sigma_reparam"], plain)
            torch.testing.assert_close(logits["sink"], logits["none"])
            over = logits["none"].max() > al.THRESHOLD
            assert (
                (abs(logits["qk_clip"].max() - al.THRESHOLD) < 1e-9)
                if over
                else (logits["qk_clip"] == logits["none"]).all()
            )


def prove_ties():
    """Prove claims 07b-ties, 07b-cap-slope."""
    for seed in SEEDS:
        spread = {f: al.entropy(grown("soft_cap", f, seed)[1]) for f in (1, 8, 64)}
        assert spread[8].median() < spread[1].median() / 2
        assert spread[64].median() > spread[8].median() + 0.5
        logits, weights = grown("soft_cap", 1000, seed)
        tied = (logits > 0).sum(dim=-1, keepdim=True)
        torch.testing.assert_close(weights, (logits > 0).double() / tied, atol=1e-6, rtol=0)
    s = torch.tensor([10.0, 60.0, 300.0], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(al.soft_cap(s).sum(), s)
    torch.testing.assert_close(slope, 1 - torch.tanh(s.detach() / 50) ** 2)
    assert slope[2] < 1e-4


def prove_sigma():
    """Prove claim 07b-sigma."""
    for seed in SEEDS:
        x_q, x_k, w_q, w_k = head(seed)
        for g_q, g_k in ((1.0, 1.0), (0.5, 3.0)):
            gains = torch.tensor(g_q), torch.tensor(g_k)
            logits = al.head_logits(x_q, x_k, 100 * w_q, w_k, "sigma_reparam", gains)
            bound = g_q * g_k * x_q.norm(dim=-1)[:, None] * x_k.norm(dim=-1) / math.sqrt(al.D_HEAD)
            assert (logits.abs() <= bound).all()
        q, k = (torch.linalg.svd(w).U[:, 0] for w in (w_q, w_k))  # the longest key that a token of length 1 can have
        assert abs((k @ al.unit_norm(w_k)).norm() - 1) < 1e-9
        assert abs((q @ al.unit_norm(w_q)).norm() - 1) < 1e-9


def latent_head(seed, heads=2, d_latent=8, d_head=6, d_rotary=4):
    """A step of multi-head latent attention: queries, what the cache holds, and the weights."""
    g = generator(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    return {
        "q_c": draw(heads, QUERIES, d_head),
        "q_r": draw(heads, QUERIES, d_rotary),
        "latent": draw(KEYS, d_latent),
        "k_r": draw(KEYS, d_rotary),
        "w_uk": draw(heads, d_latent, d_head),
    }


def latent_logits(part):
    """Logits of all heads, without making a key: the up-projection moves to the query."""
    absorbed = part["q_c"] @ part["w_uk"].mT  # (heads, n, d_latent)
    return absorbed @ part["latent"].T + part["q_r"] @ part["k_r"].T


def prove_latent():
    """Prove claims 07b-latent, 07b-clip."""
    for seed in SEEDS:
        part = latent_head(seed)
        keys = part["latent"] @ part["w_uk"]  # (heads, m, d_head), which inference never makes
        torch.testing.assert_close(latent_logits(part), part["q_c"] @ keys.mT + part["q_r"] @ part["k_r"].T)
        normed = part["q_c"] @ st.rms_norm(keys, eps=0).mT
        absorbed = part["q_c"] @ part["w_uk"].mT @ part["latent"].T
        ratio = absorbed / normed  # one number for each head and key, the key's root mean square
        torch.testing.assert_close(ratio, keys.square().mean(dim=-1).sqrt().unsqueeze(1).expand_as(ratio))
        assert (keys.square().mean(dim=-1).std(dim=-1) > 0.1).all()  # no constant could replace it
        torch.testing.assert_close(
            latent_logits({**part, "q_r": 0 * part["q_r"], "w_uk": 9 * part["w_uk"]}), 9 * absorbed
        )
        before, gamma = latent_logits(part), 0.25
        clipped = {name: value.clone() for name, value in part.items()}
        clipped["q_c"][0] *= gamma**0.5
        clipped["w_uk"][0] *= gamma**0.5
        clipped["q_r"][0] *= gamma
        after = latent_logits(clipped)
        torch.testing.assert_close(after[0], gamma * before[0])
        assert torch.equal(after[1], before[1])
        both = {**clipped, "q_r": part["q_r"].clone(), "k_r": gamma**0.5 * part["k_r"]}
        both["q_r"][0] *= gamma**0.5  # the shared key takes half of it
        torch.testing.assert_close(latent_logits(both)[0], gamma * before[0])
        assert (latent_logits(both)[1] - before[1]).abs().max() > 0.1


def prove_z_loss():
    """Prove claim 07b-z-loss."""
    for seed in SEEDS:
        scores = torch.randn(8, 20, generator=generator(seed), dtype=torch.float64).requires_grad_()
        target = torch.arange(8)
        plain = F.cross_entropy(scores, target)
        torch.testing.assert_close(F.cross_entropy(scores + 20, target), plain)
        (gradient,) = torch.autograd.grad(plain, scores)
        assert gradient.sum(dim=-1).abs().max() < 1e-12
        log_z = scores.logsumexp(dim=-1)
        (pull,) = torch.autograd.grad(log_z.square().sum(), scores)
        torch.testing.assert_close(pull, 2 * log_z.detach()[:, None] * scores.detach().softmax(dim=-1))
        torch.testing.assert_close((scores - log_z[:, None]).logsumexp(dim=-1), torch.zeros(8).double())


def prove_sink():
    """Prove claim 07b-sink."""
    for seed in SEEDS:
        values = torch.randn(KEYS, 3, generator=generator(seed), dtype=torch.float64)
        for sink in (-2.0, 0.0, 4.0):
            logits, weights = grown("sink", 1, seed, sink)
            more = torch.cat([logits, torch.full((QUERIES, 1), sink).double()], dim=-1)
            nothing = torch.cat([values, torch.zeros(1, 3).double()])  # a key of its own, with value 0
            torch.testing.assert_close(weights @ values, more.softmax(dim=-1) @ nothing)
            assert (weights.sum(dim=-1) < 1).all()
            share = weights / weights.sum(dim=-1, keepdim=True)
            torch.testing.assert_close(share, logits.softmax(dim=-1))


def norm_then_gate(x, z):
    return st.rms_norm(x, eps=0) * F.silu(z)


def gate_then_norm(x, z):
    return st.rms_norm(x * F.silu(z), eps=0)


def prove_gated_norm():
    """Prove claim 07b-gated-norm."""
    for seed in SEEDS:
        x, z = torch.randn(2, 4, 16, generator=generator(seed), dtype=torch.float64)
        sizes = [f(x, z).square().mean(dim=-1).sqrt() for f in (norm_then_gate, gate_then_norm)]
        assert sizes[0].std() > 0.05
        torch.testing.assert_close(sizes[1], torch.ones(4).double())
        half = st.rms_norm(x * 0.5 * F.silu(z), eps=0)  # a gate half as open
        torch.testing.assert_close(half, gate_then_norm(x, z))
        for f in (norm_then_gate, gate_then_norm):
            torch.testing.assert_close(f(100 * x, z), f(x, z))
        closed = torch.full((4, 16), -30.0).double()
        assert norm_then_gate(x, closed).abs().max() < 1e-9
        torch.testing.assert_close(gate_then_norm(x, closed).square().mean(dim=-1), torch.ones(4).double())


RATE, CALM, LAST = 0.3, 0.03, 20


@cache
def runs(remedy, rate):
    return al.train(remedy, rate, SEEDS)


def end(run):
    """The loss at the end of each run, the mean of the last steps."""
    return run.loss[:, -LAST:].mean(axis=1)


def tabulate_runs():
    def row(name, rate, label):
        run = runs(name, rate)
        uncertain = run.entropy[:, -LAST:].mean(axis=1)
        return [
            label,
            interval(end(run)),
            interval(run.largest.max(axis=1), ".0f"),
            interval(uncertain),
        ]

    table(
        ["five seeds, 200 steps", "loss at the end", "largest logit on the way", "entropy at the end, nats"],
        [
            row("none", CALM, f"nothing, at a rate of {CALM}"),
            *(row(name, RATE, NAMES[name]) for name in al.REMEDIES),
        ],
    )


def prove_runs():
    """Prove claims 07b-runaway, 07b-help, 07b-no-help, 07b-threshold.

    A run that fails depends on rounding, so each limit leaves room for draws that differ by 1e-15.
    """
    found = {name: runs(name, RATE) for name in al.REMEDIES}
    lost = {name: end(run) for name, run in found.items()}
    assert end(runs("none", CALM)).max() < 0.15
    assert lost["none"].min() > 0.75
    assert lost["none"].mean() > 0.9
    assert found["none"].largest.max(axis=1).min() > 1000
    assert found["none"].entropy[:, -LAST:].max() < 0.1
    for name in ("qk_norm", "sigma_reparam"):
        assert lost[name].max() < 0.25
    assert (lost["soft_cap"] < lost["none"]).all()
    assert lost["soft_cap"].min() > 0.4
    for name in ("sink", "gate"):
        assert lost[name].mean() > 0.9
        assert found[name].largest.max(axis=1).min() > 1000
    assert found["qk_clip"].largest.max(axis=1).min() > al.THRESHOLD
    assert found["qk_clip"].largest.max() < 500
    sharp, learned = (run.entropy[:, -LAST:].mean() for run in (found["qk_clip"], runs("none", CALM)))
    assert sharp < 2 * learned
    assert lost["qk_clip"].min() > 0.5
    lower = end(al.train("qk_clip", RATE, SEEDS, threshold=10.0))
    assert (lower < lost["qk_clip"] - 0.1).all()
    calm = [end(al.train("qk_clip", CALM, SEEDS, threshold=tau)) for tau in (3.0, 100.0)]
    assert calm[0].min() > 2 * calm[1].max()
    say("rate", RATE, ".1f")
    say("calm", CALM, ".2f")


DEPTHS = (6, 24)
RULES = {
    "branch as it comes, one rate": (0.0, 0.0),
    "branch ÷ √L, one rate": (0.5, 0.0),
    "branch ÷ √L, rate ÷ √L: Depth-μP": (0.5, 0.5),
    "branch ÷ L, one rate: CompleteP": (1.0, 0.0),
}


@cache
def adam_growth(power, rate_power):
    """How much Adam's first step of a Pre-LN stack grows from 6 to 24 blocks, (seeds,)."""
    few, many = at_start(partial(Movable, place="pre", power=power), DEPTHS, SEEDS)["adam"].T
    return many / few * (DEPTHS[1] / DEPTHS[0]) ** -rate_power


def tabulate_depth():
    table(
        ["Pre-LN, Adam's first step, 24 blocks over 6", "growth, five seeds"],
        [[label, interval(adam_growth(*rule), ".1f")] for label, rule in RULES.items()],
    )


def prove_depth():
    """Prove claim 07b-depth."""
    plain, root, depth_mup, complete = (adam_growth(*rule) for rule in RULES.values())
    assert plain.min() > 1.5
    assert root.min() > 1.5
    for flat in (depth_mup, complete):
        assert flat.min() > 0.7
        assert flat.max() < 1.4
