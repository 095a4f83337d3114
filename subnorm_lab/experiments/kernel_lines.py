"""The bytes that each line of a Triton kernel moves, counted in its source text: no Triton, no GPU."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

import torch


@dataclass(frozen=True)
class Line:
    """One statement of a kernel, or the head of an ``if``.

    Args:
        code: its text, without comments.
        depth: how many ``if`` it is in.
        moves: what it reads and writes, such as ``("x in",)``; empty for arithmetic.
        bytes: how many bytes that is in one call; None if Triton leaves the line out.
    """

    code: str
    depth: int
    moves: tuple[str, ...]
    bytes: int | None


def lines(kernel: str, arrays: Mapping[str, torch.dtype], rows: int, d: int) -> list[Line]:
    """A kernel of `subnorm.torch.kernels`, line by line.

    A load or store at ``at`` moves an entry for each feature of each row, at ``row`` one for each row, and at ``col``
    one for each feature. Every program loads those last ones again, but from the cache, so they count once.

    Args:
        kernel: its name, such as "_forward".
        arrays: the dtype of each array that the call has. Lines that need another one are left out.
        rows, d: the shape of x.
    """
    text = files("subnorm.torch").joinpath("kernels.py").read_text("utf-8")
    (found,) = (n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and n.name == kernel)
    entries = {"at": rows * d, "row": rows, "col": d}

    def moved(statement: ast.stmt) -> Iterator[tuple[str, int]]:
        for call in ast.walk(statement):
            if isinstance(call, ast.Call) and (name := ast.unparse(call.func)) in ("tl.load", "tl.store"):
                array, index = ast.unparse(call.args[0]).split(" + ")
                way = "in" if name == "tl.load" else "out"
                yield f"{array} {way}", entries[index] * arrays[array].itemsize if array in arrays else 0

    def walk(body: Sequence[ast.stmt], depth: int, kept: bool) -> Iterator[Line]:
        for statement in body:
            if isinstance(statement, ast.If):
                head, needed = ast.unparse(statement.test), ast.unparse(statement.test).removesuffix(" is not None")
                inside = kept and needed in arrays
                yield Line(f"if {head}:", depth, (), 0 if inside else None)
                yield from walk(statement.body, depth + 1, inside)
            else:
                each = list(moved(statement))
                code = ast.get_source_segment(text, statement) or ""
                total = sum(size for _, size in each) if kept else None
                yield Line(code, depth, tuple(name for name, _ in each), total)

    return list(walk(found.body[1:], 0, kept=True))  # the first statement is the docstring
