"""What does each part of a block contribute to training? A small language model without some of the parts.

A sublayer is ``s x + c F(N(x))``. An arm of the ablation sets whether there is a skip path (s = 1 or 0), whether N is
a norm or the identity, and whether the branch is scaled (c = 1 or 1 / sqrt(2 L)). All arms share sizes, initial
weights, batches, optimiser and learning rate.

The sweep over depths takes minutes, so its results and settings are stored as a record:

    python -m subnorm_lab.experiments.ablation

writes ``records/ablation.json`` beside this file. Deep dive 06b reads it, and repeats a part of it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from subnorm.torch import Placement
from subnorm.torch.placements import Branch
from subnorm_lab.experiments import stored
from subnorm_lab.experiments.language_model import Characters, LanguageModel, fit
from subnorm_lab.experiments.parity import held_back_loss
from subnorm_lab.experiments.stack import BUILT_IN, draw

RECORD = stored.file("ablation")

TASK, D_MODEL, NUM_HEADS = Characters(), 32, 2
BATCH = 4
LR = 5e-3
STEPS = 100
DEPTHS = (1, 2, 4, 8, 12)
SEEDS = range(5)
#: Other learning rates for the deepest model.
OTHER_RATES = (1e-3, 1e-2)
#: A longer run of the two-block models without a skip path.
LATE_DEPTH, LATE_STEPS = 2, 400
#: Characters of held-out text for evaluation: 32 windows, and the character after the last.
JUDGED = 32 * TASK.length + 1

X = TypeVar("X", npt.NDArray[np.float64], Tensor)


@dataclass(frozen=True)
class Arm:
    """One way to build a sublayer.

    Attributes:
        residual: whether there is a skip path.
        norm: whether the branch reads ``norm(x)`` instead of x.
        final_norm: whether a final norm follows the last block.
        scaled: whether the branch is divided by the root of the number of sublayers.
    """

    residual: bool
    norm: bool
    final_norm: bool
    scaled: bool = False

    def sublayer(self, x: X, branch: Callable[[X], X], norm: Callable[[X], X], num_blocks: int = 1) -> X:
        """``s x + c F(N(x))``, with c = 1 / sqrt(2 num_blocks) if scaled. For arrays and tensors."""
        y = branch(norm(x) if self.norm else x)
        if self.scaled:
            y = y / math.sqrt(2 * num_blocks)
        return x + y if self.residual else y


#: The four combinations; the residual stack with scaled branches; and the residual stack with only a final norm.
ARMS = {
    "neither": Arm(residual=False, norm=False, final_norm=False),
    "residual": Arm(residual=True, norm=False, final_norm=False),
    "norm": Arm(residual=False, norm=True, final_norm=True),
    "both": Arm(residual=True, norm=True, final_norm=True),
    "scaled": Arm(residual=True, norm=False, final_norm=False, scaled=True),
    "final": Arm(residual=True, norm=False, final_norm=True),
}


class Ablated(Placement):
    """The placement of an arm: its sublayers, and a norm only where the arm has one."""

    def __init__(self, d_model: int, num_blocks: int, arm: Arm) -> None:
        super().__init__(d_model, num_blocks, BUILT_IN["layer"] if arm.norm else nn.Identity)
        self.arm = arm
        self.final_norm = BUILT_IN["layer"](d_model) if arm.final_norm else nn.Identity()

    def step(self, x: Tensor, branch: Branch, k: int) -> Tensor:
        return self.arm.sublayer(x, branch, self.norms[k], self.num_blocks)


def build_model(arm: str, num_blocks: int, seed: int) -> LanguageModel:
    """An untrained model. The same seed draws the same weights for every arm; "both" is the usual Pre-LN.

    Args:
        arm: a key of :data:`ARMS`.
        num_blocks: depth L.
        seed: draws the weights.
    """
    weights = torch.Generator().manual_seed(seed)
    stack = draw(Ablated(D_MODEL, num_blocks, ARMS[arm]), NUM_HEADS, weights)
    return LanguageModel(TASK.vocabulary, TASK.length, stack, weights)


def train_one(
    arm: str, num_blocks: int, seed: int, steps: int = STEPS, lr: float = LR
) -> tuple[LanguageModel, npt.NDArray[np.float64]]:
    """Build and train one model with Adam: betas 0.9 and 0.999, no weight decay, no clipping, no warm-up.

    Args:
        arm: a key of :data:`ARMS`.
        num_blocks: depth L.
        seed: draws the weights and the batches; all arms see the same batches.
        steps: number of updates. A shorter run is the start of a longer one.
        lr: learning rate, constant.

    Returns:
        the model, and the training loss before every update, shape (steps,).
    """
    model = build_model(arm, num_blocks, seed)
    return model, fit(model, TASK, seed, lr, steps, batch_size=BATCH)


def tens(losses: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The mean of every ten steps, shape (steps,) to (steps / 10,)."""
    return losses.reshape(-1, 10).mean(axis=1)


def judge(model: LanguageModel) -> float:
    """The loss, in nats, on the first :data:`JUDGED` characters of the held-out text."""
    return held_back_loss(model, TASK.text.validation[:JUDGED])


def blind_loss() -> float:
    """The loss of :func:`judge` for a model that predicts the character frequencies of the training text.

    It is finite because every character of the evaluated text occurs in the training text.
    """
    return float(-TASK.text.frequencies()[TASK.text.validation[1:JUDGED]].log().mean())


@torch.no_grad()
def generate(model: LanguageModel, start: str, length: int, seed: int = 0) -> str:
    """Generate text: draw each character from the model's prediction.

    Args:
        model: reads the last T characters.
        start: the prompt, at least one character.
        length: number of characters to add.
        seed: draws the uniform numbers; every model gets the same.

    Returns:
        the added characters.
    """
    uniform = torch.rand(length, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    tokens = TASK.text.encode(start)
    for u in uniform:
        window = tokens[-len(model.positions) :]
        below = model(window[None])[0, -1].softmax(-1).cumsum(-1)  # (vocabulary,)
        tokens = torch.cat([tokens, (below < u).sum().clamp(max=len(below) - 1)[None]])
    return TASK.text.decode(tokens[-length:])


def take() -> dict[str, Any]:
    """Measure every arm at every depth, the deepest models at other learning rates, and two arms for longer."""
    training: dict[str, list[list[list[float]]]] = {arm: [] for arm in ARMS}
    held_back: dict[str, list[list[float]]] = {arm: [] for arm in ARMS}
    other: dict[str, list[list[float]]] = {arm: [] for arm in ARMS}
    late: dict[str, list[float]] = {arm: [] for arm in ARMS if not ARMS[arm].residual}
    for seed in SEEDS:
        for arm in ARMS:
            runs = [train_one(arm, depth, seed) for depth in DEPTHS]
            training[arm].append([_rounded(tens(losses)) for _, losses in runs])
            held_back[arm].append(_rounded([judge(model) for model, _ in runs]))
            other[arm].append(_rounded([judge(train_one(arm, DEPTHS[-1], seed, STEPS, lr)[0]) for lr in OTHER_RATES]))
        for arm in late:
            late[arm].extend(_rounded([judge(train_one(arm, LATE_DEPTH, seed, LATE_STEPS)[0])]))
    return {
        **stored.origin("python -m subnorm_lab.experiments.ablation"),
        "optimizer": "Adam(betas=(0.9, 0.999))",
        "learning_rate": LR,
        "other_rates": list(OTHER_RATES),
        "batch": BATCH,
        "steps": STEPS,
        "late": {"depth": LATE_DEPTH, "steps": LATE_STEPS, "held_back": late},
        "depths": list(DEPTHS),
        "seeds": list(SEEDS),
        "blind": round(blind_loss(), 4),
        "training": training,
        "held_back": held_back,
        "held_back_other_rates": other,
    }


def _rounded(values: npt.ArrayLike) -> list[float]:
    return [round(float(value), 4) for value in np.asarray(values)]


def recorded() -> dict[str, Any]:
    """The record. Arrays by arm: ``training`` (seeds, depths, steps / 10), ``held_back`` (seeds, depths),
    ``held_back_other_rates`` (seeds, rates), and ``late["held_back"]`` (seeds,)."""
    record = stored.read(RECORD)
    for part in (record, record["late"]):
        for key in {"training", "held_back", "held_back_other_rates"} & set(part):
            part[key] = {arm: np.array(values) for arm, values in part[key].items()}
    return record


if __name__ == "__main__":
    torch.set_num_threads(1)
    stored.write(RECORD, take())
