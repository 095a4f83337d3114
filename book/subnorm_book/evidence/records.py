"""Find the cells of a notebook that assert something about stored measurements, by analysing their code.

A value is stored if it comes from one of `READERS`, or derives from a stored value: by an assignment, in a loop, in a
function of the notebook, or by adding it to a list. The cells are analysed in order, and so are the functions of the
chapter's module that they call, each with the arguments of its call. Values derived from a record's settings count too:
for a new measurement, take the settings from the experiment instead.
"""

import ast
import json
import re
from itertools import zip_longest
from pathlib import Path

READERS = {"recorded", "read_records", "load", "loads", "read_json"}
MODEL = "stories.load"  # trained weights are no record: what a cell computes with them, it measures
ADDS = {"add", "append", "extend", "insert", "setdefault", "update"}


class Stored(ast.NodeVisitor):
    """The names of stored values, updated cell by cell.

    Args:
        code: the code behind the cells, a `ChapterCode`.
    """

    def __init__(self, code):
        self.code = code
        self.names = set()
        self.asserts = []  # for each assertion of the current cell, whether it uses a stored value
        self.running = []  # the functions of the module around the current statement
        self.returned = []  # for each value of each return of the innermost one, whether it is stored
        self.results = {}  # {call of such a function: the same for what it returned}
        self.home = set()  # the stored names of the module
        self.visit(code.tree)
        self.home, self.names = self.names, self.home

    def cell(self, source):
        """Whether each assertion of the next cell uses a stored value."""
        self.asserts = []
        code = re.sub(r"^\s*[%!].*$", "pass", source, flags=re.MULTILINE)
        self.visit(ast.parse(code))
        return self.asserts

    def holds(self, *nodes):
        """Whether an expression reads a record, or uses a stored value."""
        return any(self.holds_with(node, self.names) for node in nodes)

    def holds_with(self, node, names):
        """Whether a piece of code reads a record or uses one of the names, except those that it rebinds."""
        if node in self.results:
            return any(self.results[node])
        if isinstance(node, ast.Name):
            return node.id in names
        if self.name_in_module(node) in self.home:
            return True
        if isinstance(node, ast.Call) and called_name(node.func) in READERS and ast.unparse(node.func) != MODEL:
            return True
        if isinstance(node, ast.Lambda):
            names = names - {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
        for part in getattr(node, "generators", []):
            if self.holds_with(part.iter, names):
                return True
            names = names - bound(part.target)
        return any(self.holds_with(part, names) for part in ast.iter_child_nodes(node))

    def name_in_module(self, node):
        """The name that an expression takes from the chapter's module; None if it is something else."""
        if isinstance(node, ast.Attribute) and called_name(node.value) == self.code.alias:
            return node.attr
        if isinstance(node, ast.Name) and self.running and node.id not in own_names(self.running[-1]):
            return node.id
        return None

    def run(self, function, call):
        """Whether each value is stored that a function of the module returns from a call."""
        parameters = [argument.arg for argument in function.args.args]
        given = dict(zip(parameters, call.args, strict=False)) | {word.arg: word.value for word in call.keywords}
        outer = self.names, self.returned
        self.names, self.returned = self.home | {one for one in given if self.holds(given[one])}, []
        self.running.append(function)
        for part in function.body:
            self.visit(part)
        self.running.pop()
        added, returned = self.names.intersection(given) - bound(*function.body), self.returned
        self.names, self.returned = outer
        self.names |= {given[one].id for one in added if isinstance(given[one], ast.Name)}  # such as to a list
        return [any(flags) for flags in zip_longest(*returned)]

    def visit_Return(self, node):
        self.generic_visit(node)
        self.returned.append([self.holds(part) for part in getattr(node.value, "elts", [node.value]) if part])

    def bind(self, target, stored):
        if isinstance(target, ast.Name):
            (self.names.add if stored else self.names.discard)(target.id)
        elif isinstance(target, ast.Tuple | ast.List):
            for part in target.elts:
                self.bind(part, stored)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, stored)
        elif stored:  # an item or an attribute; a value that is not stored does not unmark the whole
            self.bind(base(target), stored)

    def visit_Assign(self, node):
        self.generic_visit(node)
        for target in node.targets:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = zip(target.elts, node.value.elts, strict=False)
            pairs = [(one, self.holds(value)) for one, value in pairs]
            if isinstance(target, ast.Tuple) and len(self.results.get(node.value, ())) == len(target.elts):
                pairs = zip(target.elts, self.results[node.value], strict=True)
            for one, value in pairs:
                self.bind(one, value)

    def visit_AnnAssign(self, node):
        self.generic_visit(node)
        if node.value:
            self.bind(node.target, self.holds(node.value))

    def visit_AugAssign(self, node):
        self.generic_visit(node)
        if self.holds(node.value):
            self.bind(base(node.target), True)

    def visit_NamedExpr(self, node):
        self.generic_visit(node)
        self.bind(node.target, self.holds(node.value))

    def visit_For(self, node):
        self.visit(node.iter)
        self.bind(node.target, self.holds(node.iter))
        for part in [*node.body, *node.orelse]:
            self.visit(part)

    def visit_With(self, node):
        for item in node.items:
            if item.optional_vars:
                self.bind(item.optional_vars, self.holds(item.context_expr))
        self.generic_visit(node)

    def visit_FunctionDef(self, node):
        """A function whose body uses a stored value returns one."""
        names = self.names - own_names(node)
        self.bind(ast.Name(node.name), any(self.holds_with(part, names) for part in node.body))

    def visit_Call(self, node):
        self.generic_visit(node)
        function = self.code.functions.get(self.name_in_module(node.func))
        if function and function not in self.running:
            self.results[node] = self.run(function, node)
        called = called_name(node.func)
        if called.startswith("assert_"):
            self.asserts.append(self.holds(*node.args, *[word.value for word in node.keywords]))
        elif called in ADDS and isinstance(node.func, ast.Attribute) and self.holds(*node.args):
            self.bind(base(node.func.value), True)

    def visit_Assert(self, node):
        self.generic_visit(node)
        self.asserts.append(self.holds(node.test))


def bound(*nodes):
    """The names that a piece of code assigns."""
    parts = [part for node in nodes for part in ast.walk(node)]
    return {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}


def own_names(function):
    """The names of a function's arguments, and those that it assigns."""
    return {part.arg for part in ast.walk(function.args) if isinstance(part, ast.arg)} | bound(*function.body)


def called_name(node):
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def base(node):
    """The innermost object of an attribute, item or call."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node


def newest(folder, pattern):
    """The newest record that a path or pattern names, and the command that repeats it ("" if it has none). None if
    there is no record."""
    found = [
        (path, json.loads(path.read_text("utf-8"))) for path in Path(folder).glob(pattern) if path.suffix == ".json"
    ]
    found = [(path, record if isinstance(record, dict) else {}) for path, record in sorted(found)]
    if not found:
        return None
    path, record = max(found, key=lambda one: str(one[1].get("date", "")))
    return path, record.get("command", "")
