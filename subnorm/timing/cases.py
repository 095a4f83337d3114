"""The cases to time: both norms by every rival, and roofs, which move the same bytes and compute nothing.

The name of a table tells what one call does, on arrays of the table's shape:

=================  ===========================  ==============================  ==============================
table              one call                     must move, in arrays like x     roof
=================  ===========================  ==============================  ==============================
forward            ``y = norm(x)``              2: x in, y out                  a copy
backward           from dy to dx                3: dy and x in, dx out          ``dy + x``
training           both                         5                               both
add_norm           ``h = x + f; y = norm(h)``   4: x and f in, h and y out      two copies
add_norm_backward  from dy and dh to dx         4: dy, dh and h in, dx out      ``dy + dh * x``
add_norm_training  both                         8                               both
=================  ===========================  ==============================  ==============================

On a GPU, "host" and "host_training" time the host's call of "forward" and "training", on one row.
A norm also moves gamma, beta and their gradients, each once. They count in its bytes, but not in its roof's.
"""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._functorch import config as functorch

import subnorm.numpy as sn
import subnorm.torch as st
from subnorm.numpy import blocked
from subnorm.timing import peers
from subnorm.timing.exact import EPS, Inputs, Results, outputs_of

NORMS = {"layer": ("LayerNorm", "layer_norm"), "rms": ("RMSNorm", "rms_norm")}

# Labels for readers. Records use the short names.
COPIES = {"copy": "copy of the same bytes", "copy_numpy": "copy by NumPy", "copy_out": "copy, out="}
#: All possible rivals, by the last part of a row's name.
RIVALS = {
    "hand": "{norm}, by hand",
    "builtin": "F.{function}",
    "module": "st.{norm}",
    "compile": "torch.compile(F.{function})",
    "fused": "st.Add{norm}",
    "numpy": "sn.{function}",
    "blocked": "blocked.{function}",
    "blocked_out": "blocked.{function}, out=",
    "numba": "{norm}, Numba",
    "numba_out": "{norm}, Numba, out=",
    "liger": "{norm}, Liger-Kernel",
    "quack": "{norm}, quack",
    "triton": "kernels.{function}",
}
#: The label of every row.
LABELS = COPIES | {
    f"{key}_{rival}": text.format(norm=norm, function=function)
    for key, (norm, function) in NORMS.items()
    for rival, text in RIVALS.items()
}


@dataclass(frozen=True)
class Table:
    """A kind of table: which passes it times, and whether a residual sum comes before the norm."""

    forward: bool
    backward: bool
    residual: bool

    def bytes(self, norm: str, shape: tuple[int, int], dtype: torch.dtype) -> int:
        """The fewest bytes that one call must move: each array once, and for "layer" and "rms" their vectors.

        Those are the parameters in the forward pass, and gamma and all parameters' gradients in the backward pass.
        """
        arrays = self.forward * (4 if self.residual else 2) + self.backward * (4 if self.residual else 3)
        parameters = {"layer": 2, "rms": 1}.get(norm, 0)
        vectors = self.forward * parameters + self.backward * (parameters and 1 + parameters)
        rows, d = shape
        return (arrays * rows + vectors) * d * dtype.itemsize


TABLES = {
    "forward": Table(forward=True, backward=False, residual=False),
    "backward": Table(forward=False, backward=True, residual=False),
    "training": Table(forward=True, backward=True, residual=False),
    "add_norm": Table(forward=True, backward=False, residual=True),
    "add_norm_backward": Table(forward=False, backward=True, residual=True),
    "add_norm_training": Table(forward=True, backward=True, residual=True),
    "host": Table(forward=True, backward=False, residual=False),
    "host_training": Table(forward=True, backward=True, residual=False),
}

Function = Callable[..., Any]
Call = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """One row of a table.

    Args:
        prepare: returns the call to time, after building the graph if only the backward pass is timed.
        bytes: how many bytes the call must move.
        copy: the name of its roof, which allocates results in the same way: by PyTorch; by NumPy, which asks the system
            for larger pages; or in an existing array.
        norm: "layer" or "rms"; "" for a roof.
    """

    prepare: Callable[[], Call]
    bytes: int
    copy: str = "copy"
    norm: str = ""


# The rivals: from a norm and its parameters each makes a function of x, or of x and f for a residual sum.

Rival = Callable[..., Function]


def _hand(norm: str, *parameters: Tensor) -> Function:
    """The formula as most people write it; `subnorm.torch` subtracts the mean twice, which moves more."""
    gamma, *beta = parameters

    def by_hand(x: Tensor) -> Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        centred = wide - wide.mean(-1, keepdim=True) if norm == "layer" else wide
        y = centred * torch.rsqrt((centred * centred).mean(-1, keepdim=True) + EPS) * gamma
        return (y + beta[0] if beta else y).to(x.dtype)

    return by_hand


def _builtin(norm: str, *parameters: Tensor) -> Function:
    named = dict(zip(("weight", "bias"), parameters, strict=False))
    return partial(getattr(F, NORMS[norm][1]), normalized_shape=tuple(parameters[0].shape), eps=EPS, **named)


def _module(norm: str, *parameters: Tensor) -> Function:
    return _with_parameters(st.NORMS[norm], parameters)


def _fused(norm: str, *parameters: Tensor) -> Function:
    return _with_parameters({"rms": st.AddRMSNorm}[norm], parameters)


def _with_parameters(module: type[nn.Module], parameters: Sequence[Tensor]) -> nn.Module:
    made = module(len(parameters[0]), eps=EPS)
    for name, value in zip(("weight", "bias"), parameters, strict=False):
        setattr(made, name, value)
    return made


def _compile(norm: str, *parameters: Tensor) -> Function:
    layer_norm, rms_norm = (_builtin(key, *parameters) for key in NORMS)
    functions: dict[str, Function] = {  # separate code objects, which torch.compile caches separately
        "layer": lambda x: layer_norm(x),
        "rms": lambda x: rms_norm(x),
    }
    return torch.compile(functions[norm], dynamic=False)


def _sum_then(make: Rival, norm: str, *parameters: Tensor) -> Function:
    function = make(norm, *parameters)

    def call(x: Tensor, f: Tensor) -> tuple[Tensor, Tensor]:
        h = x + f
        return function(h), h

    return call


def _compile_sum(norm: str, *parameters: Tensor) -> Function:
    return torch.compile(_sum_then(_builtin, norm, *parameters), dynamic=False)


def _rivals(table: Table, norm: str, device: str) -> dict[str, Rival]:
    """The rivals that work on PyTorch tensors."""
    alone: dict[str, Rival] = {"hand": _hand, "builtin": _builtin, "compile": _compile}
    behind_sum: dict[str, Rival] = {"builtin": partial(_sum_then, _builtin), "compile": _compile_sum}
    if device == "cpu":
        alone["module"], behind_sum["module"] = _module, partial(_sum_then, _module)
        if norm == "rms":
            behind_sum["fused"] = _fused
    else:
        autograd = table.forward and table.backward
        gpu = peers.on_gpu(norm, residual=table.residual, autograd=autograd)
        alone, behind_sum = alone | gpu, behind_sum | gpu
    found = behind_sum if table.residual else alone
    return {rival: found[rival] for rival in RIVALS if rival in found}


def build_cases(name: str, inputs: Inputs, rivals: Container[str] = tuple(RIVALS)) -> dict[str, Case]:
    """The cases of one table, roofs first.

    Args:
        name: one of `TABLES`.
        inputs: for all cases; tracked by autograd if the table has a backward pass. NumPy and Numba need float32.
        rivals: the rivals to include, if the device supports them and they are installed.

    Returns:
        the cases by name, such as "rms_builtin".
    """
    table, device = TABLES[name], inputs.x.device.type
    rows, d = inputs.x.shape
    moved = table.bytes("", (rows, d), inputs.x.dtype)
    cases = {"copy": Case(lambda: partial(_roof, inputs.detach(), table), moved)}
    on_arrays = name == "forward" and device == "cpu" and inputs.x.dtype == torch.float32
    if on_arrays:
        cases["copy_numpy"] = Case(lambda: inputs.x.numpy().copy, moved, "copy_numpy")
        cases["copy_out"] = Case(lambda: partial(torch.empty_like(inputs.x).copy_, inputs.x), moved, "copy_out")
    for norm in NORMS:
        needed = table.bytes(norm, (rows, d), inputs.x.dtype)
        for rival, make in _rivals(table, norm, device).items():
            prepare = _prepare(table, inputs, norm, make)
            if device == "cuda" and not table.forward:
                # Autograd's overhead hides a short kernel, so call the kernel directly where possible.
                prepare = peers.backward(rival, norm, inputs, residual=table.residual) or prepare
            cases[f"{norm}_{rival}"] = Case(prepare, needed, norm=norm)
        for rival, copy, prepare in _on_arrays(norm, inputs) if on_arrays else ():
            cases[f"{norm}_{rival}"] = Case(prepare, needed, copy, norm)
    norms = {key: case for key, case in cases.items() if case.norm and key.partition("_")[2] in rivals}
    return {key: case for key, case in cases.items() if key in {norm.copy for norm in norms.values()}} | norms


def _prepare(table: Table, inputs: Inputs, norm: str, make: Rival) -> Callable[[], Call]:
    """A case that calls PyTorch forward, and goes backward through autograd."""
    parameters = inputs.parameters(norm)
    arrays, gradients = [inputs.x, inputs.f], [inputs.dy, inputs.dh]
    if not table.residual:
        del arrays[1:], gradients[1:]
    made = cache(lambda: make(norm, *parameters))  # lazy, so that a rival that fails to build fails alone

    def both() -> Results:
        outputs = outputs_of(made()(*arrays))
        return *outputs, *torch.autograd.grad(outputs, [*arrays, *parameters], gradients)

    def prepare() -> Call:
        if not table.backward:
            return partial(made(), *arrays)
        if table.forward:
            return both
        with functorch.patch(donated_buffer=False):  # else compiled code frees buffers that it needs again
            outputs = outputs_of(made()(*arrays))
        return partial(torch.autograd.grad, outputs, [*arrays, *parameters], gradients, retain_graph=True)

    return prepare


def _on_arrays(norm: str, inputs: Inputs) -> list[tuple[str, str, Callable[[], Call]]]:
    """Rivals on the memory of x as a NumPy array: name, roof and call."""
    x, *parameters = (t.numpy() for t in (inputs.x, *inputs.parameters(norm)))
    there = np.empty_like(x)
    plain, in_blocks = (partial(getattr(module, NORMS[norm][1]), x, *parameters, eps=EPS) for module in (sn, blocked))
    found: list[tuple[str, str, Callable[[], Call]]] = [
        ("numpy", "copy_numpy", lambda: plain),
        ("blocked", "copy_numpy", lambda: in_blocks),
        ("blocked_out", "copy_out", lambda: partial(in_blocks, out=there)),
    ]
    if peers.version("numba"):
        found += [
            ("numba", "copy_numpy", lambda: partial(peers.numba_norm(norm), x, *parameters)),
            ("numba_out", "copy_out", lambda: partial(peers.numba_norm(norm), x, *parameters, out=there)),
        ]
    return found


def _roof(inputs: Inputs, table: Table) -> Results:
    """Read and write as many arrays as the table's cases, with almost no arithmetic."""
    x, f, dy, dh = inputs.x, inputs.f, inputs.dy, inputs.dh
    results: Results = ()
    if table.forward:
        results = (x.clone(), f.clone()) if table.residual else (x.clone(),)
    if table.backward:
        results = *results, torch.addcmul(dy, dh, x) if table.residual else dy + x
    return results
