"""Fine-tune the trained model on another text: its gains alone, LoRA, or all its weights.

stories260K knows children's stories. Here it learns two documents of the United States, in its own tokens. Three parts
of each: eight tenths to train on, one to choose the learning rate, and the last, held back. The runs take minutes:

    python -m subnorm_lab.experiments.fine_tuning

writes ``records/fine_tuning.json`` beside this file. Deep dive 10b reads the record, and repeats a short run.
"""

from collections.abc import Iterator
from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrize

from subnorm_lab import stories
from subnorm_lab.experiments import stored, text
from subnorm_lab.stories.torch import Stories

RECORD = stored.file("fine_tuning")

STEPS, LENGTH, BATCH_SIZE = 100, 64, 8
SEEDS = range(3)
RATES = (3e-3, 3e-2)
CUTS = (0.0, 0.8, 0.9, 1.0)

ALL_MATRICES = ("q", "k", "v", "o", "gate", "up", "down")

#: What is trained: matrices that get a LoRA, and its rank; or "gains", "branch gains" (without the last), "all".
ADAPTERS: dict[str, tuple[tuple[str, ...], int]] = {
    "branch gains": ((), 0),
    "LoRA on queries, rank 1": (("q",), 1),
    "LoRA on attention's outputs, rank 1": (("o",), 1),
    "LoRA on all matrices, rank 4": (ALL_MATRICES, 4),
    "all weights": ((), 0),
}


class LoRA(nn.Module):
    """A weight plus a product of two thin matrices, W + BA; B starts at zero, so nothing changes at first."""

    def __init__(self, weight: Tensor, rank: int, generator: torch.Generator) -> None:
        super().__init__()
        outputs, inputs = weight.shape
        self.a = nn.Parameter(torch.randn(rank, inputs, generator=generator) / inputs**0.5)
        self.b = nn.Parameter(torch.zeros(outputs, rank))

    def forward(self, weight: Tensor) -> Tensor:
        return weight + self.b @ self.a


def adapted(adapter: str, seed: int) -> Stories:
    """The trained model in float32, with the parameters of one of :data:`ADAPTERS` to train and the others frozen."""
    model = Stories(stories.load(np.float32)).requires_grad_(adapter == "all weights")
    matrices, rank = ADAPTERS[adapter]
    generator = torch.Generator().manual_seed(seed)
    for branch in model.branches:
        for name in matrices:
            if hasattr(branch, name):
                parametrize.register_parametrization(branch, name, LoRA(getattr(branch, name), rank, generator))
    if adapter == "branch gains":
        model.norms[:-1].requires_grad_()
    return model


def trained(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that an optimizer gets."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


@cache
def tokens(part: int) -> Tensor:
    """Part 0, 1 or 2 of both documents: to train on, to choose by, held back. Encoded line by line."""
    encode, found = stories.load().tokenizer.encode, []
    low, high = CUTS[part : part + 2]
    for file in text.FILES:
        lines = [line for line in text.read(file).splitlines() if line]
        found += lines[int(low * len(lines)) : int(high * len(lines))]
    return torch.tensor([token for line in found for token in encode(line)[1:]])


@torch.no_grad()
def loss(model: Stories, part: int) -> float:
    """Mean loss of the next token over a part, in nats, in windows of :data:`LENGTH` tokens."""
    windows = tokens(part).unfold(0, LENGTH + 1, LENGTH)
    scores = model(windows[:, :-1])
    return float(F.cross_entropy(scores.flatten(0, 1), windows[:, 1:].flatten()))


def updates(model: Stories, rate: float, seed: int, steps: int = STEPS) -> Iterator[float]:
    """Train with Adam, whose rate falls to zero; yields the loss of each batch."""
    optimizer = torch.optim.Adam(trained(model), rate)
    generator, part = torch.Generator().manual_seed(100 + seed), tokens(0)
    for step in range(steps):
        at = torch.randint(len(part) - LENGTH, (BATCH_SIZE, 1), generator=generator)
        batch = part[at + torch.arange(LENGTH + 1)]  # (BATCH_SIZE, LENGTH + 1)
        for group in optimizer.param_groups:
            group["lr"] = rate * (1 - step / steps)
        value = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        yield value.item()


def story_loss(model: Stories) -> float:
    """Mean loss on the stories that the model knew, in nats."""
    with torch.no_grad():
        return float(np.mean([model.loss(torch.tensor(one)) for one in stories.beginnings()]))


def train_one(adapter: str, rate: float, seed: int) -> tuple[dict[str, float], Stories]:
    """One run: the loss on the text to choose by, the held-out text, and the stories; and the model."""
    model = adapted(adapter, seed)
    for _loss in updates(model, rate, seed):
        pass
    measured = {"choose": loss(model, 1), "held_back": loss(model, 2), "stories": story_loss(model)}
    return {name: round(value, 4) for name, value in measured.items()}, model


def gains(model: Stories) -> list[list[float]]:
    """The gains of the branches' norms, (10, d), rounded."""
    weights = model.state_dict()
    return [[round(gain, 4) for gain in weights[f"norms.{k}.weight"].tolist()] for k in range(10)]


def take() -> stored.Record:
    """All runs: every rate with the first seed, then the best one with the others."""
    untouched = adapted("branch gains", 0)
    record = {
        **stored.origin("python -m subnorm_lab.experiments.fine_tuning"),
        "steps": STEPS,
        "length": LENGTH,
        "batch_size": BATCH_SIZE,
        "optimizer": "Adam, its rate falls to zero",
        "rates": list(RATES),
        "seeds": list(SEEDS),
        "before": {"held_back": round(loss(untouched, 2), 4), "stories": round(story_loss(untouched), 4)},
        "found": {},
    }
    for adapter in ADAPTERS:
        tried = {rate: train_one(adapter, rate, SEEDS[0]) for rate in RATES}
        best = min(tried, key=lambda rate: tried[rate][0]["choose"])
        runs = [tried[best][0], *(train_one(adapter, best, seed)[0] for seed in SEEDS[1:])]
        parameters = sum(parameter.numel() for parameter in trained(adapted(adapter, 0)))
        chosen = [tried[rate][0]["choose"] for rate in RATES]
        record["found"][adapter] = {"parameters": parameters, "rate": best, "choose": chosen, "runs": runs}
        if adapter == "branch gains":
            record["gains"] = gains(tried[best][1])
        print(f"{adapter}: {[one['held_back'] for one in runs]} nats", flush=True)
    return record


def recorded() -> stored.Record:
    """The record."""
    return stored.read(RECORD)


if __name__ == "__main__":
    torch.set_num_threads(1)
    stored.write(RECORD, take())
