"""Run a cell of a notebook's page as if the notebook had run up to it. The page's worker calls this in Pyodide.

Every run begins with no names, and first runs the earlier statements that the cell needs (cell_needs.py), with the
reader's changes to their cells.
"""

import ast
import functools
import importlib
import json

from subnorm_book.in_page.cell_needs import Needs
from subnorm_book.in_page.session import Session, fresh


class Cells(Session):
    """The cells of a page.

    Args:
        notebook: JSON of all code cells, in order: a list of [name, code, whether it ends with an error].
    """

    def __init__(self, notebook):
        super().__init__()
        cells = json.loads(notebook)
        self.cells = {name: code for name, code, _ in cells}
        self.raising = {name for name, _, raises in cells if raises}

    def run(self, cell, changed, then, send):
        """Run a cell; the result is JSON, with "changed", the earlier cells that were run as the reader changed them.

        Args:
            cell: its name.
            changed: JSON of the code of all cells that the reader changed, {name: code}.
            then: JSON of the names of later cells that show the result.
            send: gets pieces of the output.
        """
        changed = json.loads(changed)
        code = self.cells | {name: code for name, code in changed.items() if name == cell or parses(code)}
        names = list(code)
        raising = [names.index(name) for name in self.raising if code[name] == self.cells[name]]
        needs = Needs(code.values(), here, raising)
        shown = [names.index(name) for name in (cell, *json.loads(then))]
        numbers = {n for k in shown for n in (*needs.before(k, strict=False), *needs.of_cell[k])}
        parts = [(names[k], code[names[k]] if k in shown else part, k in shown) for k, part in needs.groups(numbers)]
        if not needs.of_cell[shown[0]]:  # not Python: let the reader see what is wrong
            parts = [(cell, code[cell], True)]
        self.names = fresh()
        result = json.loads(super().run(cell, code[cell], "", send, parts))
        result["changed"] = [name for name, _, _ in parts if name != cell and code[name] != self.cells[name]]
        return json.dumps(result)


def parses(code):
    try:
        ast.parse(code)
    except (SyntaxError, ValueError):
        return False
    return True


@functools.cache
def here(name):
    """Whether a module, or a name of a module, is in the page."""
    parent, _, last = name.rpartition(".")
    try:
        importlib.import_module(name)
    except ImportError:
        return bool(parent) and here(parent) and hasattr(importlib.import_module(parent), last)
    return True
