"""The code behind a cell: a figure or a proof is one call, and its code is a function of the chapter's module.

A notebook has `from subnorm_lab.chapters import rmsnorm as chapter`, and its cells have calls such as
`chapter.prove_scale(x)`. Code that analyses a cell gets these functions here, too. Nothing is imported.
"""

import ast
import json
import re
import symtable
from pathlib import Path

FOLDER = Path("subnorm_lab", "chapters")
PACKAGE = ".".join(FOLDER.parts)
IMPORT = re.compile(rf"^from {re.escape(PACKAGE)} import (\w+)(?: as (\w+))?$", re.MULTILINE)


class ChapterCode:
    """The functions that the cells of a notebook can call; none if it imports no module of its own.

    Args:
        cells: the cells of the notebook.
        root: the folder that has `subnorm_lab`.
    """

    def __init__(self, cells, root):
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        found = IMPORT.search("\n".join(sources))
        self.alias = found and (found[2] or found[1])
        self.path = found and Path(root, FOLDER, f"{found[1]}.py")
        text = self.path.read_text("utf-8") if found else ""
        self.lines, self.tree = text.splitlines(), ast.parse(text)
        self.parts = {name: node for node in self.tree.body for name in binds(node)}
        self.functions = {name: node for name, node in self.parts.items() if isinstance(node, ast.FunctionDef)}

    def names(self, source):
        """The names of the module that a cell needs, by its calls and from one to the next."""
        todo = re.findall(rf"\b{self.alias}\.(\w+)", source) if self.alias else []
        found = set()
        while todo:
            name = todo.pop()
            if name in self.parts and name not in found:
                found.add(name)
                todo += uses(symtable.symtable(self.text(self.parts[name]), str(self.path), "exec"))
        return found

    def called(self, source):
        """The statements of the module that bind these names, in their order; of an import only what is needed."""
        names = self.names(source)
        return [part for node in self.tree.body for part in one_by_one(node) if names.intersection(binds(part))]

    def expanded(self, source):
        """The source of a cell, and what it needs of the module, with the imports: to analyse."""
        return self.joined(source, self.called(source))

    def shown(self, source):
        """The same without the imports: to read."""
        return self.joined(source, [n for n in self.called(source) if not isinstance(n, ast.Import | ast.ImportFrom)])

    def joined(self, source, nodes):
        return "\n\n\n".join([source, *map(self.text, nodes)])

    def in_place(self, source):
        """The source of a cell with the code of a function in the place of its call, as statements of the notebook.

        A call in a larger expression or with keywords stays, and so does one of a function that returns early.
        """
        if not self.called(source):
            return source
        return "\n".join(part for node in ast.parse(source).body for part in self.as_statements(node))

    def as_statements(self, node):
        call = node.value if isinstance(node, ast.Assign | ast.Expr) else None
        function = self.function(call.func) if isinstance(call, ast.Call) else None
        if not function or call.keywords or returns(function) not in ([], function.body[-1:]):
            return [ast.unparse(node)]
        given = {one.arg: ast.unparse(value) for one, value in zip(function.args.args, call.args, strict=True)}
        body = [ast.parse(f"{name} = {value}") for name, value in given.items() if name != value] + function.body
        if returns(function):
            value = body.pop().value
            if isinstance(node, ast.Assign) and [ast.unparse(value)] != list(map(ast.unparse, node.targets)):
                body.append(ast.Assign(node.targets, value, lineno=0))
        needed = [part for part in self.called(ast.unparse(call)) if part is not function]
        return map(ast.unparse, needed + body)

    def function(self, node):
        """The function of the module that an expression names; None if it names something else."""
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", None) == self.alias:
            return self.functions.get(node.attr)
        return None

    def text(self, node):
        """A statement as it is written, with the comments right above it; of an import what is left of it."""
        if isinstance(node, ast.Import | ast.ImportFrom):
            return ast.unparse(node)
        first = min([node.lineno, *(part.lineno for part in getattr(node, "decorator_list", ()))]) - 1
        while first and self.lines[first - 1].startswith("#"):
            first -= 1
        return "\n".join(self.lines[first : node.end_lineno])


def of_page(env):
    """The code behind the cells of the page that is read; the page is read again when it changes."""
    path = Path(env.doc2path(env.docname))
    cells = json.loads(path.read_text("utf-8"))["cells"] if path.suffix == ".ipynb" else []
    code = ChapterCode(cells, env.srcdir)
    if code.path:
        env.note_dependency(str(code.path))
    return code


def returns(node):
    """The returns of a function, without those of the functions in it."""
    parts = [part for part in ast.iter_child_nodes(node) if not isinstance(part, ast.FunctionDef | ast.Lambda)]
    return [one for part in parts for one in ([part] if isinstance(part, ast.Return) else returns(part))]


def uses(table):
    """The names of the module that a piece of code uses, from its symbols."""
    top = table.get_type() == "module"
    own = [one.get_name() for one in table.get_symbols() if one.is_referenced() and (top or one.is_global())]
    return own + [name for inner in table.get_children() for name in uses(inner)]


def one_by_one(node):
    """A statement; an import as one for each name."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [type(node)(**{**vars(node), "names": [alias]}) for alias in node.names]
    return [node]


def binds(node):
    """The names that a statement of a module binds."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.partition(".")[0] for alias in node.names]
    return [part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]
