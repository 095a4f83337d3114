"""Run a cell of a notebook's page as if the notebook had run up to it. The page's worker calls this in Pyodide.

Every run begins with no names, and first runs earlier cells (try_it.py says which), as the reader changed them.
"""

import ast
import contextlib
import json

from subnorm_book.in_page.session import Session, fresh, parse

LACKING = (ImportError, NameError)  # a library that no page has, and a name that came from it


class Cells(Session):
    """The cells of a page.

    Args:
        notebook: JSON of all cells with a tag, in order: a list of [name, code, whether it ends with an error, whether
            it runs before later cells].
    """

    def __init__(self, notebook):
        super().__init__()
        cells = json.loads(notebook)
        self.cells = {name: code for name, code, _, _ in cells}
        self.raising = {name for name, _, raises, _ in cells if raises}
        self.first = {name for name, _, _, first in cells if first}

    def run(self, cell, changed, then, send):
        """Run a cell; the result is JSON, with "changed", the earlier cells that were run as the reader changed them.

        Args:
            cell: its name.
            changed: JSON of the code of all cells that the reader changed, {name: code}.
            then: JSON of the names of later cells that show the result.
            send: gets pieces of the output.
        """
        changed = json.loads(changed)
        code = self.cells | {name: text for name, text in changed.items() if name == cell or parses(text)}
        heard = [cell, *json.loads(then)]
        reached = list(code)[: list(code).index(heard[-1]) + 1]
        names = [name for name in reached if name in heard or name in self.first]
        self.names = fresh()
        parts = [(name, code[name], name in heard) for name in names]
        result = json.loads(super().run(cell, code[cell], "", send, parts))
        edited = [name for name in names if name != cell and code[name] != self.cells[name]]
        return json.dumps(result | {"changed": edited})

    def execute_unheard(self, name, code):
        """Run a cell, and pass over the statements that need what the page lacks, and over the error of the book."""
        errors = Exception if name in self.raising and code == self.cells[name] else LACKING
        for node in parse(code, f"<{name}>").body:
            parts = [node]
            if isinstance(node, ast.Import | ast.ImportFrom):  # of an import, each name by itself
                parts = [type(node)(**{**vars(node), "names": [alias]}) for alias in node.names]
            for part in parts:
                with contextlib.suppress(errors):
                    exec(compile(ast.Module([part], []), f"<{name}>", "exec"), self.names)


def parses(code):
    try:
        ast.parse(code)
    except (SyntaxError, ValueError):
        return False
    return True
