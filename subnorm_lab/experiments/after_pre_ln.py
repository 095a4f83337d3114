"""What every placement of a stack does before training, and whether it trains without warm-up.

Deep dive 07a measures the untrained stacks itself. The training runs take half an hour, so they are a record:

    python -m subnorm_lab.experiments.after_pre_ln all

writes ``records/after_pre_ln.json`` beside this file, after each run. Without ``all`` the command measures only missing
runs, so you can stop and resume it. The deep dive repeats some of the runs.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from subnorm.provenance import versions
from subnorm.torch import STACK_PLACEMENTS, Placement, Stack
from subnorm.torch.placements import Branch
from subnorm_lab.experiments import stored
from subnorm_lab.experiments.language_model import Characters, LanguageModel, fit
from subnorm_lab.experiments.stack import causal_mask, draw_weights, mean_square, random_tokens
from subnorm_lab.experiments.warmup import settled

RECORD = stored.file("after_pre_ln")

D_MODEL, NUM_HEADS, CLASSES = 32, 4, 32
STEP = 1e-5

#: Whose first step :func:`at_start` takes.
OPTIMIZERS = {"step": torch.optim.SGD, "adam": torch.optim.Adam}

#: The training runs: 12 blocks learn to predict the next character, without warm-up.
TASK, BLOCKS, RATE, BATCH_SIZE, SEEDS = Characters(length=16), 12, 2e-3, 8, range(3)

#: The steps after which the loss is recorded. The last one is the length of a run.
STEPS = (40, 120)

#: Placements whose runs go on: Pre-LN, and those that had learned too little to judge them.
LONGER = ("pre", "post", "ngpt")
LONGER_STEPS = (120, 480)

Build = Callable[[int, int], Placement]
Sizes = dict[str, npt.NDArray[np.float64]]


class Movable(Placement):
    """A norm at any place of the sublayer, and a branch of any size g.

    "pre": ``x + g F(norm(x))``; "post": ``norm(x + g F(x))``; "after_branch": ``x + g norm(F(x))``; "none":
    ``x + g F(x)``. All of them end in one more norm, which does nothing after "post".

    Args:
        place: a key of the list above.
        power: ``g = L^-power``, with L sublayers.
    """

    def __init__(self, d_model: int, num_blocks: int, place: str, power: float) -> None:
        super().__init__(d_model, num_blocks)
        self.place, self.g = place, (2 * num_blocks) ** -power

    def step(self, x: Tensor, branch: Branch, k: int) -> Tensor:
        norm = self.norms[k]
        added = branch(norm(x) if self.place == "pre" else x)
        total = x + self.g * (norm(added) if self.place == "after_branch" else added)
        return norm(total) if self.place == "post" else total


def untrained(build: Build, num_blocks: int, generator: torch.Generator) -> Stack:
    """A stack with a placement, prepared as its paper says.

    Xavier-normal weights and zero biases, the same for all placements before they are prepared; what a placement learns
    has its own start. A seed draws all attention first, as it did for the record.

    Args:
        build: builds the placement, such as a value of :data:`STACK_PLACEMENTS`.
        num_blocks: depth N.
        generator: draws the weights.
    """
    stack = Stack(build(D_MODEL, num_blocks), NUM_HEADS).double()
    draw_weights(stack.attention, generator)
    draw_weights(stack.feed_forward, generator)
    stack.placement.prepare(stack, random_tokens(torch.Generator().manual_seed(0), 2, 16, D_MODEL))
    return stack


def at_start(build: Build, depths: tuple[int, ...], seeds: range) -> Sizes:
    """Five measures of an untrained stack, by depth. The loss is a cross-entropy with random targets.

    Args:
        build: as in :func:`untrained`.
        depths: numbers of blocks N.
        seeds: one draw of weights, tokens and targets for each; DropPath is in evaluation.

    Returns:
        "stream": the mean square of the stream after the last sublayer, over that of the input.
        "share": the squared cosine of that stream and the input, the mean over tokens.
        "gradient": that of the first block's down matrix over that of the last block's; nan if both are 0.
        "step": the relative change of the output after one step of gradient descent on the matrices of the sublayers,
        over its learning rate, which is so small that the change is proportional to it.
        "adam": the same for the first step of Adam.
        Each of shape (seeds, depths).
    """
    found: Sizes = {key: np.zeros((len(seeds), len(depths))) for key in ("stream", "share", "gradient", *OPTIMIZERS)}
    for row, seed in enumerate(seeds):
        for column, num_blocks in enumerate(depths):
            generator = torch.Generator().manual_seed(seed)
            stack = untrained(build, num_blocks, generator).eval()
            for key, value in _measures(stack, generator).items():
                found[key][row, column] = value
    return found


def _measures(stack: Stack, generator: torch.Generator) -> dict[str, float]:
    x = random_tokens(generator, batch_size=2, length=16, d_model=D_MODEL)
    head = torch.randn(D_MODEL, CLASSES, generator=generator, dtype=x.dtype) / D_MODEL**0.5
    target = torch.randint(CLASSES, (x.shape[0] * x.shape[1],), generator=generator)
    branches, placement = stack.branches(causal_mask(x.shape[1])), stack.placement
    state = placement.states(x, branches)[-1]
    stream, y = placement.stream(state), placement.end(state)
    downs = [weight for name, weight in stack.matrices() if name == "down"]
    parameters = [*stack.attention.parameters(), *stack.feed_forward.parameters()]
    matrices = [parameter for parameter in parameters if parameter.ndim == 2]
    gradients = torch.autograd.grad(F.cross_entropy((y @ head).flatten(0, 1), target), [downs[0], downs[-1], *matrices])
    first, last = (float(gradient.norm()) for gradient in gradients[:2])
    found = {
        "stream": mean_square(stream.detach()) / mean_square(x),
        "share": float(F.cosine_similarity(stream.detach(), x, dim=-1).square().mean()),
        "gradient": first / last if last else np.nan,
    }
    start = [matrix.detach().clone() for matrix in matrices]
    with torch.no_grad():
        for name, optimizer in OPTIMIZERS.items():
            for matrix, before, gradient in zip(matrices, start, gradients[2:], strict=True):
                matrix.copy_(before)
                matrix.grad = gradient
            optimizer(matrices, lr=STEP).step()
            change = placement(x, branches) - y
            found[name] = (mean_square(change) / mean_square(y)) ** 0.5 / STEP
    return found


class PlacedModel(LanguageModel):
    """A language model whose position embeddings are half of what is stored, so that they learn at half the rate."""

    def __init__(self, name: str, generator: torch.Generator) -> None:
        stack = untrained(STACK_PLACEMENTS[name], BLOCKS, generator)
        super().__init__(TASK.vocabulary, TASK.length, stack, generator)
        self.positions.data *= 2

    def embed(self, tokens: Tensor) -> Tensor:
        return self.tokens[tokens] + 0.5 * self.positions[: tokens.shape[1]]


def train_one(name: str, seed: int, steps: int) -> npt.NDArray[np.float64]:
    """Train a new model with Adam at a constant learning rate, :data:`RATE`.

    Args:
        name: of :data:`STACK_PLACEMENTS`.
        seed: of weights and batches; all placements get the same ones.
        steps: updates.

    Returns:
        the training loss before every update, in nats, shape (steps,).
    """
    torch.manual_seed(seed)  # for DropPath
    model = PlacedModel(name, torch.Generator().manual_seed(seed))
    return fit(model, TASK, seed, RATE, steps, batch_size=BATCH_SIZE)


def at(losses: npt.NDArray[np.float64], steps: tuple[int, ...]) -> list[float]:
    """The mean of the last 20 losses at each of the steps, in nats."""
    return [round(settled(losses[:step]), 4) for step in steps]


def take(anew: bool, path: Path) -> None:
    """Measure the missing runs, or all, and write the record after each.

    Raises:
        ValueError: a record measured with other versions.
    """
    kept: dict[str, Any] = {} if anew or not path.exists() else stored.read(path)
    if kept and kept["versions"] != versions():
        raise ValueError(f"the record was measured with {kept['versions']}, not {versions()}. Measure all anew.")
    asked = {"loss": tuple(STACK_PLACEMENTS), "longer_loss": LONGER}
    parts: dict[str, dict[str, list[list[float]]]] = {
        key: {name: kept.get(key, {}).get(name, []) for name in names} for key, names in asked.items()
    }
    plan = [(s, "loss", name, STEPS) for s in SEEDS for name in STACK_PLACEMENTS]
    plan += [(s, "longer_loss", name, LONGER_STEPS) for s in SEEDS for name in LONGER]
    for seed, part, name, steps in plan:
        rows = parts[part][name]
        if len(rows) > seed:
            continue
        rows.append(at(train_one(name, seed, steps[-1]), steps))
        record = {
            **stored.origin("python -m subnorm_lab.experiments.after_pre_ln all"),
            "task": repr(TASK),
            "blocks": BLOCKS,
            "d_model": D_MODEL,
            "batch_size": BATCH_SIZE,
            "learning_rate": RATE,
            "optimizer": "Adam(betas=(0.9, 0.999))",
            "chance": round(TASK.chance, 4),
            "seeds": list(SEEDS),
            "steps": list(STEPS),
            "longer_steps": list(LONGER_STEPS),
            **parts,
        }
        stored.write(path, record)
        print(f"{name}, seed {seed}: {rows[-1]} nats", flush=True)


def recorded() -> dict[str, Any]:
    """The record, with ``["loss"][name]`` and ``["longer_loss"][name]`` as arrays of shape (seeds, steps)."""
    record = stored.read(RECORD)
    for part in ("loss", "longer_loss"):
        record[part] = {name: np.array(rows) for name, rows in record[part].items()}
    return record


if __name__ == "__main__":
    torch.set_num_threads(1)
    take(sys.argv[1:] == ["all"], RECORD)
