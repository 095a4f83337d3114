"""Turns: cells of a notebook with a number to change, `depth = 32  # try 8, 128`, and what changes with it.

A cell tagged `turn:depth` has one such line, and shows its result itself. A test runs it with every value:

    def test_the_plain_gradient_vanishes_with_depth():
        at = turned("02-residual-connections", "depth")
        assert at["128"].plain < at["8"].plain

A turn gets its names from earlier cells, and sets its own seed. No later cell may read what a turn binds, so no value
can break one.
"""

import ast
import builtins
import json
import re
import symtable
from contextlib import contextmanager
from types import SimpleNamespace

import torch
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from matplotlib import rc_context, rcParamsDefault
from subnorm_book.evidence.chapter_code import uses
from traitlets.config import Config

from tools.checkout import ROOT

LINE = re.compile(r"^(\w+) = (.+?)  # try (.+)$", re.MULTILINE)
TAG = "turn:"


def source(cell):
    return "".join(cell["source"])


def turn_of(cell):
    """The name of a turn, or None."""
    found = [tag.removeprefix(TAG) for tag in cell["metadata"].get("tags", []) if tag.startswith(TAG)]
    return found[0] if found else None


def cells(path):
    return json.loads(path.read_text("utf-8"))["cells"]


def bound_and_read(cell):
    """The names that a cell binds, and those that it reads before it has bound them, or in its functions."""
    table = symtable.symtable(source(cell), "cell", "exec")
    binds = {one.get_name() for one in table.get_symbols() if one.is_assigned() or one.is_imported()}
    return binds, reads_first(ast.parse(source(cell)), binds) - set(dir(builtins))


def reads_first(tree, binds):
    """The names that the statements of a cell need from earlier cells."""
    needs, bound = set(), set()
    for statement in tree.body:
        if isinstance(statement, ast.For):
            needs |= loads(statement.iter) - bound
            bound |= {part.id for part in ast.walk(statement.target) if isinstance(part, ast.Name)}
        table = symtable.symtable(ast.unparse(statement), "cell", "exec")
        needs |= {*uses(table)} - bound
        bound |= {one.get_name() for one in table.get_symbols() if one.is_assigned() or one.is_imported()}
    return needs


def loads(node):
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}


def needed(code, k):
    """The earlier cells that cell k needs."""
    wanted, found = bound_and_read(code[k])[1], []
    for cell in reversed(code[:k]):
        binds, reads = bound_and_read(cell)
        if binds & wanted:
            found.insert(0, cell)
            wanted = (wanted - binds) | reads
    return found


def values(text):
    """The stored value of a turn, and the suggested ones, as they are written."""
    stored, suggested = LINE.search(text).groups()[1:]
    return [stored, *(ast.unparse(one) for one in ast.parse(f"({suggested},)", mode="eval").body.elts)]


def turned(stem, turn):
    """What a turn binds and prints with each of its values, {value: namespace}; `printed` is the text.

    Fails if the stored text of the cell is not what its stored value prints.
    """
    code = [cell for cell in cells(ROOT / "notebooks" / f"{stem}.ipynb") if cell["cell_type"] == "code"]
    k = [turn_of(cell) for cell in code].index(turn)
    text = source(code[k])
    found = {}
    with kernel() as shell, capture_output():
        for cell in needed(code, k):
            run(shell, source(cell))
        before = dict(shell.user_ns)
        for value in values(text):
            shell.user_ns.update(before)
            with capture_output() as output:
                run(shell, LINE.sub(lambda line, value=value: f"{line[1]} = {value}", text))
            # `except ValueError as error` binds a name, and deletes it
            bound = {name: shell.user_ns[name] for name in bound_and_read(code[k])[0] & shell.user_ns.keys()}
            found[value] = SimpleNamespace(**bound, printed=output.stdout)
    said = "".join("".join(one["text"]) for one in code[k]["outputs"] if one["output_type"] == "stream")
    assert found[values(text)[0]].printed == said, f"{stem}, turn {turn}: it printed something else in the notebook"
    return found


@contextmanager
def kernel():
    """IPython with no names, and with PyTorch and Matplotlib as a new process has them, much as the kernel of a
    notebook. What its cells change for the whole process is put back: other tests go on in it.
    """
    InteractiveShell.clear_instance()
    before = torch.get_default_dtype(), torch.get_num_threads()
    with rc_context(rcParamsDefault):
        torch.set_default_dtype(torch.float32)
        torch.set_num_threads(1)
        try:
            yield InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
        finally:
            torch.set_default_dtype(before[0])
            torch.set_num_threads(before[1])


def run(shell, text):
    shell.run_cell(text).raise_error()
