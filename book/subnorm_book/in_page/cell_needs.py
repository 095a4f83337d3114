"""Which cells of a notebook run with NumPy alone, and which earlier statements each of them needs.

It reads the code and runs nothing. A cell qualifies if all it imports is the standard library, NumPy, and modules of
the package that import nothing else, and if every name that it uses comes from itself or from an earlier statement that
qualifies, too. Statements, not cells: a cell of imports may bring in PyTorch for its neighbours, and a cell that draws
may compute something first.

A statement is needed if it binds a name that is used, or may change the object behind it: by an assignment into it, by
a method that changes lists, dictionaries or arrays, by a draw from a random generator, or by a call of a function of
the notebook that does one of these. That an object may have two names is not followed. A test therefore runs every cell
that qualifies, and compares its output with the stored one.
"""

import ast
import builtins
import functools
import sys
from dataclasses import dataclass, field
from pathlib import Path

#: Methods that change their object, of containers and arrays.
CHANGE = frozenset(["add", "append", "clear", "discard", "extend", "fill", "insert", "itemset", "partition", "pop"])
CHANGE |= {"popitem", "put", "remove", "resize", "reverse", "setdefault", "setfield", "setflags", "sort", "update"}
#: What makes a random generator, of which every method changes it.
GENERATOR = frozenset({"default_rng", "Generator"})
#: Functions that change their arguments.
CHANGERS = frozenset({"copyto", "fill_diagonal", "next", "place", "put", "putmask", "setattr", "delattr", "shuffle"})

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
OURS = ("subnorm", "subnorm_lab")
GIVEN = frozenset(dir(builtins)) | {"__name__"}


@dataclass
class Statement:
    """A statement at the top level of a cell; of an import, one name of it."""

    cell: int
    code: str
    imports: list[str] = field(
        default_factory=list
    )  # modules, with a dot before a name that may be one: "numpy.linalg"
    binds: set[str] = field(default_factory=set)
    sometimes: bool = False  # binds its names only in some runs
    changes: set[str] = field(default_factory=set)
    uses: set[str] = field(default_factory=set)  # at once
    later: set[str] = field(default_factory=set)  # when a function that it defines is called
    given: set[str] = field(default_factory=set)  # names that are arguments of a call
    function: "Body | None" = None  # that it defines


@dataclass
class Body:
    """What a function of the notebook changes: some of its arguments, and names of the notebook."""

    arguments: bool
    changes: set[str]


class Reader(ast.NodeVisitor):
    """Collect the names of one statement."""

    def __init__(self, statement, generators):
        self.statement, self.generators = statement, generators
        self.local = []  # the names of the functions and comprehensions around
        self.depth = 0  # functions around
        self.changed = set()  # local names of functions, too
        self.bound = set()  # so far, by this statement itself

    def own(self, name):
        return any(name in names for names in self.local)

    def use(self, name):
        if not self.own(name) and name not in self.bound:
            (self.statement.later if self.depth else self.statement.uses).add(name)

    def change(self, node):
        """The object behind `a`, `a[0]`, `a.b` and so on may change."""
        while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
            node = node.value
        if isinstance(node, ast.Name):
            self.changed.add(node.id)
            if not self.own(node.id) and node.id not in self.bound:
                self.statement.changes.add(node.id)

    def bind(self, name):
        if self.depth and not self.own(name):  # of a function that declares it global
            self.statement.changes.add(name)
        elif not self.own(name):
            self.statement.binds.add(name)
            self.bound.add(name)

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Load):
            self.use(node.id)
        else:
            self.bind(node.id)

    def visit_Assign(self, node):
        self.visit(node.value)
        for target in getattr(node, "targets", None) or [node.target]:
            if makes_generator(node.value) and isinstance(target, ast.Name) and not self.local:
                self.generators.add(target.id)
            self.visit(target)

    visit_NamedExpr = visit_Assign

    def visit_AnnAssign(self, node):
        if node.value:
            self.visit_Assign(node)

    def visit_For(self, node):
        for part in [node.iter, node.target, *node.body, *node.orelse]:
            self.visit(part)

    def visit_Attribute(self, node):
        if not isinstance(node.ctx, ast.Load):
            self.change(node)
        self.generic_visit(node)

    visit_Subscript = visit_Attribute

    def visit_AugAssign(self, node):
        self.change(node.target)
        if isinstance(node.target, ast.Name):
            self.use(node.target.id)
        self.generic_visit(node)

    def visit_Delete(self, node):
        for target in node.targets:
            self.change(target)
        self.generic_visit(node)

    def visit_Call(self, node):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        for argument in arguments:
            root = argument.value if isinstance(argument, ast.Starred) else argument
            if isinstance(root, ast.Name):
                self.statement.given.add(root.id)
                if root.id in self.generators or name in CHANGERS:
                    self.change(root)
        for keyword in node.keywords:
            if keyword.arg == "out":
                self.change(keyword.value)
        if isinstance(node.func, ast.Attribute):
            owner = node.func.value
            drawn = isinstance(owner, ast.Name) and owner.id in self.generators
            if name in CHANGE or drawn:
                self.change(owner)
            if name == "at" and arguments:  # np.add.at(x, ...)
                self.change(arguments[0])
        self.generic_visit(node)

    def visit_FunctionDef(self, node):
        for part in [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]:
            self.visit(part)
        self.bind(node.name)
        self.inside(node.args, node.body)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node):
        for part in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
            self.visit(part)
        self.inside(node.args, [node.body])

    def inside(self, arguments, body):
        names = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        names |= {a.arg for a in (arguments.vararg, arguments.kwarg) if a}
        shared = {n for part in body for inner in ast.walk(part) if isinstance(inner, ast.Global) for n in inner.names}
        self.local.append((names | bound_in(body)) - shared)
        self.depth += 1
        for part in body:
            self.visit(part)
        self.depth -= 1
        self.local.pop()

    def visit_ClassDef(self, node):
        for part in [*node.decorator_list, *node.bases, *node.keywords]:
            self.visit(part)
        self.bind(node.name)
        self.local.append(bound_in(node.body))
        for part in node.body:
            self.visit(part)
        self.local.pop()

    def visit_comprehension_of(self, node):
        targets = {name for generator in node.generators for name in bound_in([generator.target])}
        self.visit(node.generators[0].iter)
        self.local.append(targets)
        self.generic_visit(node)
        self.local.pop()

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_comprehension_of

    def visit_ExceptHandler(self, node):
        if node.name:
            self.bind(node.name)
        self.generic_visit(node)

    def visit_Import(self, node):
        for alias in node.names:
            self.bind_import(alias.name, alias.asname or alias.name.partition(".")[0])

    def visit_ImportFrom(self, node):
        for alias in node.names:
            self.bind_import(f"{'.' * node.level}{node.module or ''}.{alias.name}", alias.asname or alias.name)

    def bind_import(self, module, name):
        self.statement.imports.append(module)
        self.bind(name)


def bound_in(body):
    """The names that a function with this body binds for itself."""
    found, todo = set(), list(body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        if not isinstance(node, (*SCOPES, ast.ClassDef, *COMPREHENSIONS)):
            todo += ast.iter_child_nodes(node)
    return found


def statements(sources):
    """The statements of all cells, in order; a cell that is not Python has none."""
    result, generators = [], set()
    for cell, source in enumerate(sources):
        try:
            tree = ast.parse(source)
        except SyntaxError:  # such as a line for the shell
            continue
        lines = source.split("\n")
        for node in tree.body:
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            code = "\n".join(lines[first - 1 : node.end_lineno])
            for part in one_by_one(node):
                own = Statement(cell, code if part is node else ast.unparse(part))
                own.sometimes = isinstance(part, ast.If | ast.Try | ast.While | ast.Match)
                reader = Reader(own, generators)
                reader.visit(part)
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                    names = {a.arg for a in ast.walk(part.args) if isinstance(a, ast.arg)}
                    own.function = Body(bool(names & reader.changed), own.changes)
                    own.changes = set()
                result.append(own)
    functions, modules = {}, set()
    for own in result:
        modules = modules | own.binds if own.imports else modules - own.binds
        own.changes -= modules  # such as np.sort(x)
        for name in (own.uses | own.later) & functions.keys():  # a call changes what the function changes
            body = functions[name]
            changed = body.changes | (own.given if body.arguments else set())
            (own.function.changes if own.function else own.changes).update(changed - modules)
        if own.function:
            functions.update(dict.fromkeys(own.binds, own.function))
    return result


def one_by_one(node):
    """The names of an import one by one; any other statement as it is."""
    if isinstance(node, ast.Import):
        return [ast.Import(names=[alias]) for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [ast.ImportFrom(module=node.module, names=[alias], level=node.level) for alias in node.names]
    return [node]


def makes_generator(value):
    """Whether this is a call such as `np.random.default_rng(0)`."""
    function = value.func if isinstance(value, ast.Call) else None
    return getattr(function, "attr", getattr(function, "id", None)) in GENERATOR


@functools.cache
def imports_of(source):
    """What a file with this source imports when it is imported."""
    found = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            own = Statement(0, "")
            Reader(own, set()).visit(node)
            found += own.imports
    return tuple(found)


class Modules:
    """The modules of a source tree, and which need NumPy alone."""

    def __init__(self, root):
        self.root = Path(root)
        self.needs, self.alone = functools.cache(self.needs), functools.cache(self.alone)

    def path(self, module):
        """The file of a module of the package; None if the package has no such module."""
        base = self.root.joinpath(*module.split("."))
        return next((p for p in (base.with_suffix(".py"), base / "__init__.py") if p.exists()), None)

    def needs(self, module):
        """The modules of the package that the import of one runs, with itself."""
        found, todo = set(), [module]
        while todo:
            name = todo.pop()
            if name.partition(".")[0] not in OURS or name in found:
                continue
            parent, _, _ = name.rpartition(".")
            path = self.path(name)
            if path:
                found.add(name)
                todo += imports_of(path.read_text("utf-8"))
            if parent:
                todo.append(parent)
        return found

    def alone(self, module):
        """Whether an import runs nothing but the standard library, NumPy, and the package."""
        top = module.partition(".")[0]
        if top not in OURS:
            return top == "numpy" or top in sys.stdlib_module_names
        paths = [self.path(name) for name in self.needs(module)]
        others = {
            name for path in paths for name in imports_of(path.read_text("utf-8")) if name.partition(".")[0] not in OURS
        }
        return all(map(self.alone, others))


class Needs:
    """What the cells of a notebook need.

    Args:
        sources: the code of its cells, in order.
        alone: whether the import of a module, or of a name of a module, needs NumPy alone.
        raising: the cells whose last statement raises an error, and so does nothing for others.
    """

    def __init__(self, sources, alone, raising=()):
        sources = list(sources)
        self.all, self.alone = statements(sources), alone
        self.of_cell = [[k for k, own in enumerate(self.all) if own.cell == cell] for cell in range(len(sources))]
        for cell in raising:
            for k in self.of_cell[cell][-1:]:
                self.all[k].binds = self.all[k].changes = set()

    def before(self, cell, strict=True):
        """The earlier statements that a cell needs, by their numbers in `all`.

        If some of its names do not qualify, the answer is None, or leaves them out if it need not be `strict`.
        """
        own, needed = self.of_cell[cell], set()
        if strict and not (own and all(map(self.qualifies, own))):
            return None
        for k in own:
            for name in self.all[k].uses | self.all[k].later:
                found = self.behind(name, k, own[-1] + 1)
                if found is None and strict:
                    return None
                needed |= found or set()
        return sorted(needed.difference(own))

    def qualifies(self, k):
        return all(map(self.alone, self.all[k].imports))

    def behind(self, name, at, end):
        """All statements that a name needs which statement `at` uses; its functions are called before `end`."""
        needed, todo = set(), [(name, at)]
        while todo:
            name, at = todo.pop()
            found = self.sources_of(name, at if name in self.all[at].uses else end)
            if found is None or not all(map(self.qualifies, found)):
                return None
            new = [k for k in found if k not in needed]
            needed.update(new)
            todo += [(use, k) for k in new for use in self.all[k].uses | self.all[k].later]
        return needed

    def sources_of(self, name, end):
        """The statements before `end` that bind a name or change its object; None if nothing binds it."""
        found, bound = [], name in GIVEN
        for k in range(end - 1, -1, -1):
            own = self.all[k]
            if name in own.changes or name in own.binds:
                found.append(k)
                if name in own.binds and name not in own.changes:
                    bound = True
                    if not own.sometimes:
                        break
        return found if bound else None

    def groups(self, numbers):
        """These statements by cells, as the code of each: [(cell, code)]."""
        found = {}
        for k in sorted(numbers):
            found.setdefault(self.all[k].cell, []).append(self.all[k].code)
        return [(cell, "\n".join(parts)) for cell, parts in found.items()]
