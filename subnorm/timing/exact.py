"""The inputs of a table, and the float64 results that every case must match before it is timed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor, nn

import subnorm.torch as st

EPS = 1e-5

#: Entries to compare at a time: in float64 they take eight times as many bytes, and a GPU has no room for more.
PIECE = 2**22

#: The results of a call: y, with a residual sum also h, then the gradients of x (and f), gamma (and beta).
Results = tuple[Any, ...]


@dataclass(frozen=True)
class Inputs:
    """The arrays of a table: the inputs x and f, and the gradients dy and dh of y and h = x + f."""

    x: Tensor
    f: Tensor
    dy: Tensor
    dh: Tensor
    gamma: Tensor
    beta: Tensor

    @classmethod
    def draw(cls, shape: tuple[int, int], dtype: torch.dtype, device: str, *, tracked: bool, seed: int = 0) -> "Inputs":
        """Draw random arrays: x with a nonzero mean, and random gains and shifts.

        All have the same dtype, because with a wider gain the built-in RMSNorm does not use its fused kernel.

        Args:
            shape: rows and features of x, f, dy and dh.
            dtype: of all arrays.
            device: "cpu" or "cuda".
            tracked: whether autograd tracks x, f, gamma and beta.
            seed: of the random numbers.
        """
        random = torch.Generator(device).manual_seed(seed)

        def normal(*size: int, around: float = 0.0) -> Tensor:
            return torch.randn(size, generator=random, dtype=dtype, device=device).add_(around)

        x, f, dy, dh = normal(*shape, around=0.5), normal(*shape), normal(*shape), normal(*shape)
        gamma, beta = (nn.Parameter(normal(shape[1], around=around), requires_grad=tracked) for around in (1.0, 0.0))
        return cls(x.requires_grad_(tracked), f.requires_grad_(tracked), dy, dh, gamma, beta)

    def parameters(self, norm: str) -> tuple[Tensor, ...]:
        return {"layer": (self.gamma, self.beta), "rms": (self.gamma,)}[norm]

    def detach(self) -> "Inputs":
        """The same arrays, without autograd."""
        return Inputs(*(getattr(self, field.name).detach() for field in fields(self)))


def outputs_of(result: Any) -> Results:
    return result if isinstance(result, tuple) else (result,)


def expected(inputs: Inputs, norm: str, *, residual: bool, forward: bool, backward: bool) -> list[list[Tensor]]:
    """The right results of a case, from the readable functions of `subnorm.torch` in float64.

    Args:
        inputs: the inputs of the case.
        norm: "layer" or "rms".
        residual: whether h = x + f is normalised, and also returned.
        forward: whether y (and h) are results.
        backward: whether the gradients of x (and f), gamma (and beta) are results.

    Returns:
        for each result, its consecutive pieces of some rows each.
    """
    inputs = inputs.detach()
    parameters = [p.double().requires_grad_() for p in inputs.parameters(norm)]
    functions: dict[str, Callable[..., Tensor]] = {"layer": st.layer_norm, "rms": st.rms_norm}
    rows = max(1, PIECE // inputs.x.shape[-1])
    pieces: list[list[Tensor]] = []
    sums = [torch.zeros_like(p) for p in parameters]
    for x, f, dy, dh in zip(*(t.split(rows) for t in (inputs.x, inputs.f, inputs.dy, inputs.dh)), strict=True):
        arrays = [t.double().requires_grad_() for t in ((x, f) if residual else (x,))]
        h = sum(arrays[1:], arrays[0])
        outputs = [functions[norm](h, *parameters, eps=EPS), h][: len(arrays)]
        piece = [y.detach() for y in outputs] if forward else []
        if backward:
            gradients = torch.autograd.grad(outputs, [*arrays, *parameters], [dy.double(), dh.double()][: len(arrays)])
            piece += gradients[: len(arrays)]
            for total, part in zip(sums, gradients[len(arrays) :], strict=True):
                total += part
        pieces.append(piece)
    by_result = [list(parts) for parts in zip(*pieces, strict=True)]
    return by_result + [[total.detach()] for total in sums] if backward else by_result


def max_error(results: Results, expected: Sequence[Sequence[Tensor]]) -> float:
    """The largest error of any result, relative to that result's largest expected entry; NaN if any result has NaN."""
    errors = []
    for got, pieces in zip(results, expected, strict=True):
        parts = torch.as_tensor(got).detach().split([len(piece) for piece in pieces])
        off = [(part.double() - piece).abs().max() for part, piece in zip(parts, pieces, strict=True)]
        largest = torch.stack([piece.abs().max() for piece in pieces]).max()
        errors.append(torch.stack(off).max() / largest)
    return float(torch.stack(errors).max())  # torch's max, unlike Python's, passes NaN on
