"""Wrong answers by the thousand: the right answer to an exercise, changed in one place or spoiled around it.

`altered` changes one place of its text: an operator, a name, a number, a condition, the order of arguments, a line, or
an addition that writes into what it adds to. `spoiled` leaves the text and changes what goes in or comes out.
"""

import ast
import contextlib
import copy
import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from subnorm_lab.checks.collect import Case, Scores, Sublayer, run_case
from subnorm_lab.checks.edited import text_of
from subnorm_lab.checks.exercise import Exercise

Answer = Callable[..., Any]

#: Replacements of each operator.
OPERATORS = {
    ast.Add: (ast.Sub, ast.Mult),
    ast.Sub: (ast.Add, ast.Mult),
    ast.Mult: (ast.Add, ast.Div, ast.MatMult),
    ast.Div: (ast.Mult, ast.FloorDiv, ast.Sub),
    ast.Pow: (ast.Mult,),
    ast.MatMult: (ast.Mult,),
    ast.RShift: (ast.LShift,),
    ast.BitAnd: (ast.BitOr,),
    ast.Lt: (ast.LtE, ast.Gt, ast.GtE, ast.NotEq),
    ast.Gt: (ast.GtE, ast.Lt, ast.LtE, ast.NotEq),
    ast.Eq: (ast.NotEq, ast.LtE, ast.GtE, ast.Lt, ast.Gt),
    ast.Is: (ast.IsNot,),
    ast.And: (ast.Or,),
}
#: Replacements of the name of a function, a type or a setting.
NAMES = {
    "mean": ("sum", "max", "std"),
    "sum": ("mean", "max", "var"),
    "max": ("min", "mean"),
    "min": ("max",),
    "median": ("mean", "min", "max"),
    "var": ("std",),
    "float32": ("float16",),
    "float16": ("float32",),
    "argmax": ("argmin",),
    "isinf": ("isnan", "isfinite"),
    "ones": ("zeros",),
    "zeros": ("ones",),
    "stack": ("concatenate",),
    "quantile": ("percentile",),
    "inclusive": ("exclusive",),
    "ValueError": ("KeyError", "TypeError", "Exception"),
}


@dataclass(frozen=True)
class Around:
    """What a function has: the names that a name may be mistaken for, and those of its arguments."""

    names: list[str]
    arguments: set[str]


def altered(exercise: Exercise) -> Iterator[tuple[str, Answer]]:
    """(the lines that are new, or "without" and those that are gone; the answer) of each change of one place."""
    given, settings = exercise.reference, {}
    if isinstance(given, functools.partial):  # of a variant
        given, settings = given.func, given.keywords
    tree = ast.parse(text_of(given))
    whole = ast.unparse(tree)
    seen = {whole}
    around = Around(names_in(tree), arguments_of(tree))
    for place, new in [(at, new) for at in places(tree) for new in variations(*at, around)]:
        text = with_change(tree, place, new)
        if text in seen or re.search(r"(\w+)\.append\(\1\)", text):  # a list in itself has no end
            continue
        seen.add(text)
        made: dict[str, Any] = {}
        try:
            exec(compile(text, f"<{given.__name__}>", "exec", dont_inherit=True), given.__globals__, made)
        except (SyntaxError, TypeError, ValueError):  # such as a break without a loop
            continue
        answer = made[given.__name__]
        yield words(whole, text), functools.partial(answer, **settings) if settings else answer


def words(old: str, new: str) -> str:
    """The lines that a change adds; if it adds none, those that it takes away."""
    before, after = ([line.strip() for line in text.split("\n")] for text in (old, new))
    added = [line for line in after if line not in before]
    return " | ".join(added or ["without " + line for line in before if line not in after] or ["another order"])


def names_in(tree: ast.AST) -> list[str]:
    """The arguments and variables of a function, but for those that only give another name to an argument."""
    stored = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    values = [node.value for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    renamed = {
        item.id for value in values if isinstance(value, ast.Tuple) for item in value.elts if hasattr(item, "id")
    }
    return sorted(stored | arguments_of(tree) - renamed)


def arguments_of(tree: ast.AST) -> set[str]:
    return {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}


def places(tree: ast.AST) -> Iterator[tuple[ast.AST, ast.AST, str, int | None]]:
    """(node, parent, field, position in the field if that is a list) of every node but the arguments' defaults."""
    given = {id(node) for top in ast.walk(tree) if isinstance(top, ast.arguments) for node in ast.walk(top)}
    for parent in ast.walk(tree):
        if id(parent) in given:
            continue
        for field, value in ast.iter_fields(parent):
            for k, node in enumerate(value if isinstance(value, list) else [value]):
                if isinstance(node, ast.AST):
                    yield node, parent, field, k if isinstance(value, list) else None


def with_change(tree: ast.AST, place: tuple[ast.AST, ast.AST, str, int | None], new: Any) -> str:
    """The text with something else in one place; the tree stays as it is."""
    node, parent, field, k = place
    if k is None:
        setattr(parent, field, new)
        text = ast.unparse(ast.fix_missing_locations(tree))
        setattr(parent, field, node)
        return text
    items, fresh = getattr(parent, field), new if isinstance(new, list) else [new]
    items[k : k + 1] = fresh
    text = ast.unparse(ast.fix_missing_locations(tree))
    items[k : k + len(fresh)] = [node]
    return text


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def variations(node: ast.AST, parent: ast.AST, field: str, _: int | None, around: Around) -> Iterator[Any]:
    """What can stand in a place: nodes, or for a statement lists of statements."""
    if type(node) in OPERATORS:
        yield from (other() for other in OPERATORS[type(node)])
    if isinstance(node, ast.stmt):
        yield from statements(node, around.arguments)
    match node:
        case ast.BinOp(left, op, right):
            yield from (left, right, ast.BinOp(left, op, ast.UnaryOp(ast.USub(), right)))
            if not isinstance(op, ast.Add | ast.Mult | ast.BitAnd):
                yield ast.BinOp(right, op, left)
        case ast.UnaryOp(_, operand):
            yield operand
        case ast.BoolOp(_, values):
            yield from values
        case ast.Compare(left, [op], [right]):
            yield from (expression("True"), expression("False"))
            if isinstance(right, ast.Constant) and type(right.value) is int:
                yield from (ast.Compare(left, [ast.Lt()], [ast.Constant(right.value + step)]) for step in (1, 2, 3))
        case ast.Constant(bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(int()):
            yield from (ast.Constant(other) for other in (node.value + 1, node.value - 1, None))
            if isinstance(parent, ast.BinOp):
                yield from (ast.Constant(node.value * factor) for factor in (1.01, 0.99))
        case ast.Constant(float()):
            yield from (ast.Constant(node.value * factor) for factor in (1 + 1e-4, 1 - 1e-4, 1.01, 0.99, 2, -1))
        case ast.Constant(str(name)) if name in NAMES or isinstance(parent, ast.Compare):
            yield from (ast.Constant(other) for other in NAMES.get(name, (f"{name}s",)))
        case ast.IfExp(test, body, other):
            yield from (body, other, ast.IfExp(test, other, body))
        case ast.Name(name, ast.Load()):
            others = (*around.names, *NAMES.get(name, ()))
            yield from (ast.Name(other, ast.Load()) for other in others if other != name)
        case ast.Attribute(value, name):
            yield from (ast.Attribute(value, other, node.ctx) for other in NAMES.get(name, ()))
        case ast.Subscript(value, _):
            yield value
        case ast.Slice():
            yield ast.Slice()
        case ast.Call(function, arguments, keywords):
            yield from calls(function, arguments, keywords)
        case ast.Tuple(items, ast.Load()) | ast.List(items, ast.Load()) if len(items) > 1:
            yield from (type(node)(some, node.ctx) for some in (items[::-1], items[:-1], items[1:]))
    if isinstance(parent, ast.For | ast.comprehension) and node is parent.iter:
        loop = ast.unparse(node)
        yield from (expression(f"list({loop}){part}") for part in ("[1:]", "[:-1]", "[::-1]"))


def calls(function: ast.expr, arguments: list[ast.expr], keywords: list[ast.keyword]) -> Iterator[ast.expr]:
    """What can stand for a call: what it is called on or with, or the call with fewer or exchanged arguments."""
    if isinstance(function, ast.Attribute):
        yield function.value
        if any(keyword.arg == "keepdims" for keyword in keywords):
            yield from (ast.Subscript(function.value, expression(f"_[..., {at}]").slice) for at in (":1", "-1:"))
    yield from arguments
    yield from (ast.Call(function, arguments, keywords[:k] + keywords[k + 1 :]) for k in range(len(keywords)))
    yield from (ast.Call(function, arguments[:k] + arguments[k + 1 :], keywords) for k in range(len(arguments)))
    for k in range(len(arguments) - 1):
        exchanged = [*arguments[:k], arguments[k + 1], arguments[k], *arguments[k + 2 :]]
        yield ast.Call(function, exchanged, keywords)


def statements(node: ast.stmt, arguments: set[str]) -> Iterator[list[ast.stmt]]:
    """What can stand for a statement."""
    if not isinstance(node, ast.Return | ast.FunctionDef | ast.ClassDef | ast.Import):
        yield [ast.Pass()]
    match node:
        case ast.Assign([ast.Name(name)], ast.BinOp(left, op, right)):
            end = ast.parse(f"{name} = _").body
        case ast.Return(ast.BinOp(left, op, right)):
            end = ast.parse("return _").body
        case ast.If(_, body, other):
            yield body
            yield other or [ast.Pass()]
            return
        case ast.Break():
            yield [ast.Continue()]
            return
        case _:
            return
    for one, two in ((left, right), (right, left))[: 2 if isinstance(op, ast.Add | ast.Mult) else 1]:
        calls_a_name = isinstance(one, ast.Call) and isinstance(one.func, ast.Name)  # it may return its input
        if calls_a_name or (isinstance(one, ast.Name) and one.id in arguments):
            begin = ast.parse(f"_ = {ast.unparse(one)}").body
            yield [*begin, ast.AugAssign(ast.Name("_", ast.Store()), op, two), *end]


RESULTS: dict[str, Callable[[Any], Any]] = {
    "rounds to 3 digits": np.vectorize(lambda number: float(f"{number:.3g}")),
    "adds a thousandth of the largest": lambda y: y + 1e-3 * np.abs(y).max(),
    "multiplies by 1.001": lambda y: y * 1.001,
    "multiplies by 1.02": lambda y: y * 1.02,
    "changes the sign": lambda y: -y,
    "takes the size": np.abs,
    "squeezes": np.squeeze,
    "adds an axis": lambda y: np.asarray(y)[None],
    "makes float32": lambda y: np.asarray(y, np.float32),
    "makes float64": lambda y: np.asarray(y, np.float64),
}


def spoiled(exercise: Exercise, cases: list[Case]) -> Iterator[tuple[str, Answer]]:
    """(what it does, the answer) of the right answer with something wrong around it."""
    right = exercise.reference
    for k in range(len(cases[0].args)):
        kinds = {type(case.args[k]) for case in cases}
        if np.ndarray in kinds:
            yield f"adds to argument {k}", after(right, k, lambda value: np.add(value, 1, out=value, casting="unsafe"))
        if list in kinds:
            yield f"appends to argument {k}", after(right, k, lambda value: value.append(0))
            yield f"empties argument {k}", after(right, k, lambda value: value.clear())
            yield f"turns argument {k} round", after(right, k, lambda value: value.reverse())
        if dict in kinds:
            yield f"adds to argument {k}", after(right, k, lambda value: value.update(more=1))
            yield f"sorts in argument {k}", after(right, k, lambda value: value["seconds"].sort())
        if kinds & {Sublayer, Scores}:
            yield f"calls argument {k} again", again(right, k)
        for axes in {np.ndim(case.args[k]) for case in cases if isinstance(case.args[k], np.ndarray)}:
            yield f"fails on {axes} axes of argument {k}", fails(right, k, axes)
    value = run_case(right, cases[0], exercise.way, tensors=False).value
    sample = next(iter(value.values())) if isinstance(value, dict) else value[-1] if isinstance(value, tuple) else value
    if np.asarray(sample).dtype.kind == "f":
        dtype = getattr(sample, "dtype", float)
        for label, change in RESULTS.items():
            if label != f"makes {np.dtype(dtype)}":
                yield label, lambda *args, change=change: on_numbers(right(*args), change)


def after(right: Answer, k: int, change: Callable[[Any], Any]) -> Answer:
    def answer(*args: Any) -> Any:
        result = copy.deepcopy(right(*args))
        if args[k] is not None:
            change(args[k])
        return result

    return answer


def again(right: Answer, k: int) -> Answer:
    def answer(*args: Any) -> Any:
        result = right(*args)
        for given in args:
            with contextlib.suppress(Exception):
                return args[k](given) is None or result
        return result

    return answer


def fails(right: Answer, k: int, axes: int) -> Answer:
    def answer(*args: Any) -> Any:
        if np.ndim(args[k]) == axes:
            raise ValueError("no")
        return right(*args)

    return answer


def on_numbers(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(on_numbers(one, change) for one in value)
    return value if isinstance(value, str) or np.asarray(value).dtype.kind != "f" else change(value)
