"""Figures and proofs of deep dive 10b, Fine-tuning and norms."""

from dataclasses import replace
from functools import cache

import numpy as np
import torch
from torch import nn

from subnorm_lab import chapters, figures, live, stories
from subnorm_lab.experiments import fine_tuning
from subnorm_lab.report import interval, say, table
from subnorm_lab.stories.torch import Stories

WAY = (0.0, 0.25, 0.5, 0.75, 1.0)
BEGINNING = "The"
GAINS, QUERIES, OUTPUTS = list(fine_tuning.ADAPTERS)[:3]


def begin():
    chapters.begin()
    return stories.load()


@cache
def documents():
    """The first windows of the held-out text, each of 64 tokens and the next."""
    return fine_tuning.tokens(2).unfold(0, fine_tuning.LENGTH + 1, fine_tuning.LENGTH)[:12].tolist()


def loss(model, some):
    return stories.losses(model, some).mean()


@cache
def at(way):
    """The trained model, its branches' gains part of the way to those that were fine-tuned."""
    model = stories.load()
    tuned = np.concatenate([fine_tuning.recorded()["gains"], model.gains[10:]])
    return replace(model, gains=(1 - way) * model.gains + way * tuned)


@cache
def losses_at(way):
    return loss(at(way), stories.beginnings()), loss(at(way), documents())


def draw_way():
    both = np.array([losses_at(way) for way in WAY])

    def frame(way):
        told, written = losses_at(way)
        text = stories.generate(at(way), BEGINNING, tokens=24)
        sentence = f"Stories cost {told:.1f} nats a token, and the documents {written:.1f}. The model writes: “{text}”"
        return sentence, [
            {
                "stories": (WAY, both[:, 0]),
                "documents": (WAY, both[:, 1]),
                "now": ([way, way], [told, written]),
            }
        ]

    live.chart(
        "gains-alone",
        "The trained model, with only its 640 gains changed",
        [live.slider("way", "way to the fine-tuned gains", {f"{100 * way:.0f} %": way for way in WAY}, 0.0, play=True)],
        [
            live.Lines(
                live.Axis("way to the fine-tuned gains", ticks={way: f"{100 * way:.0f} %" for way in WAY}),
                live.Axis("loss (nats)", limits=(0, 5)),
                {
                    "stories": live.Curve("stories", figures.GREEN),
                    "documents": live.Curve("two old documents", figures.BLUE, linestyle="--"),
                    "now": live.Curve("now", figures.ORANGE, marks="only"),
                },
                260,
            )
        ],
        frame,
        "Two curves against the way from the trained gains to the fine-tuned ones. The loss on stories rises from 1 to "
        "about 2 nats, that on the held-out text of two old documents falls by one nat.",
    )


def prove_way():
    """Prove claims 10b-gains, 10b-forgets."""
    record = fine_tuning.recorded()
    before, found = record["before"], record["found"][GAINS]
    assert found["parameters"] == 10 * 64
    held_back = [one["held_back"] for one in found["runs"]]
    assert max(held_back) < before["held_back"] - 1
    assert min(one["stories"] for one in found["runs"]) > before["stories"] + 0.5
    told, written = np.array([losses_at(way) for way in WAY]).T
    assert (np.diff(told) > 0).all()
    assert written[-1] < written[0] - 1
    say("before", before["held_back"], ".1f", noise=1e-4)
    say("gains_alone", np.mean(held_back), ".2f", noise=1e-4)
    say("share", 100 * 640 / 260032, ".2f")


def tabulate_adapters():
    record = fine_tuning.recorded()
    rows = [["nothing", "0", "–", f"{record['before']['held_back']:.2f}", f"{record['before']['stories']:.2f}"]]
    for name, found in record["found"].items():
        held_back, told = ([one[part] for one in found["runs"]] for part in ("held_back", "stories"))
        rows.append(
            [name, f"{found['parameters']:,}", f"{found['rate']:g}", interval(held_back), interval(told)],
        )
    table(["trained", "numbers", "rate", "held-out text, three seeds (nats)", "stories (nats)"], rows)


def prove_adapters():
    """Prove claims 10b-equal, 10b-more."""
    found = fine_tuning.recorded()["found"]
    held_back = {name: np.array([one["held_back"] for one in each["runs"]]) for name, each in found.items()}
    for name in (GAINS, QUERIES, OUTPUTS):
        assert found[name]["parameters"] == 640
    assert held_back[GAINS].max() < held_back[QUERIES].min() - 0.1
    assert abs(held_back[GAINS].mean() - held_back[OUTPUTS].mean()) < 0.1
    rank_4, everything = (held_back[name] for name in list(held_back)[3:])
    assert max(rank_4.max(), everything.max()) < held_back[GAINS].min() - 0.3


def prove_lora():
    """Prove claim 10b-lora-starts."""
    text = torch.tensor(stories.beginnings()[0])
    with torch.no_grad():
        plain = fine_tuning.adapted(GAINS, 0)(text)
        for name in (QUERIES, OUTPUTS):
            model = fine_tuning.adapted(name, 0)
            assert torch.equal(model(text), plain)  # B is zero
            assert not any(norm.weight.requires_grad for norm in model.norms)  # frozen by default
            assert sum(p.numel() for p in fine_tuning.trained(model)) == 640


def prove_short_run():
    """Prove that the record's runs begin as one does now."""
    model = fine_tuning.adapted(GAINS, 0)
    first, *_, last = fine_tuning.updates(model, 1e-2, 0, steps=20)
    assert last < first - 0.4


def decayed(model, times, centred):
    """All gains after decay alone has shrunk what is stored to so many times of it: g, or g - 1."""
    return replace(model, gains=1 + (model.gains - 1) * times if centred else model.gains * times)


def tabulate_decay():
    model, texts = stories.load(), stories.beginnings()
    usual = loss(model, texts)
    table(
        ["stored", *(f"shrunk to {times:.0%}" for times in (0.9, 0.7, 0.5))],
        [
            [name, *(f"{loss(decayed(model, times, centred), texts) - usual:.2f} nats" for times in (0.9, 0.7, 0.5))]
            for name, centred in (("the gain", False), ("the gain less 1", True))
        ],
    )


def orthogonal(gradient):
    """What Muon makes of a matrix of gradients: U V^T, all singular values 1."""
    u, _, vt = torch.linalg.svd(gradient, full_matrices=False)
    return u @ vt


@cache
def gains_gradients():
    """The gradients of all eleven gains of the trained model, stacked, for some of the new text: (11, 64)."""
    model = Stories(stories.load()).requires_grad_(False)
    model.norms.requires_grad_()
    value = torch.stack([model.loss(torch.tensor(window)) for window in documents()]).mean()
    return torch.stack(torch.autograd.grad(value, [norm.weight for norm in model.norms]))


def prove_decay():
    """Prove claims 10b-decay-axes, 10b-centred, 10b-muon."""
    model, texts = stories.load(), stories.beginnings()
    usual = loss(model, texts)
    for times in (0.9, 0.7, 0.5):
        plain, centred = (loss(decayed(model, times, one), texts) - usual for one in (False, True))
        assert plain > 2 * centred > 0
    optimizer = torch.optim.AdamW([nn.Parameter(torch.full((2, 3), 2.0))], lr=0.01, weight_decay=0.1)
    (gains,) = optimizer.param_groups[0]["params"]
    gains.grad = torch.zeros_like(gains)
    optimizer.step()
    torch.testing.assert_close(gains.detach(), torch.full((2, 3), 2.0 * (1 - 0.01 * 0.1)))

    stacked = gains_gradients()
    sizes = stacked.norm(dim=1)
    assert sizes.max() > 3 * sizes.min()
    update = orthogonal(stacked)
    torch.testing.assert_close(update @ update.T, torch.eye(11).double())
    quiet = stacked.clone()
    quiet[4] *= 1e-6  # a layer with next to no gradient moves as far as the others
    torch.testing.assert_close(orthogonal(quiet)[4].norm(), torch.tensor(1.0).double())
    assert (orthogonal(quiet)[3] - update[3]).norm() > 1e-3  # and layer 3 moves otherwise
    say("gradients_ratio", sizes.max() / sizes.min(), ".0f")


def prove_frozen_statistics():
    """Prove claims 10b-statistics, 10b-train-again."""
    x = 3 + torch.randn(8, 4, generator=torch.Generator().manual_seed(0))
    bn = nn.BatchNorm1d(4).requires_grad_(False)
    bn(x)
    assert (bn.running_mean != 0).all()
    bn.eval()
    kept = bn.running_mean.clone()
    bn(x)
    assert torch.equal(bn.running_mean, kept)
    nn.Sequential(bn).train()(x)  # train() of the model that holds it
    assert not torch.equal(bn.running_mean, kept)
    for norm in (nn.LayerNorm(4), nn.RMSNorm(4)):
        assert not list(norm.buffers())
        assert torch.equal(norm.train()(x), norm.eval()(x))
