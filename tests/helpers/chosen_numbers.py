"""Tie the numbers that the text calls chosen, {given}`120`, to the code that chose them.

A number has to be one of the constants that the code of its own section uses: a literal there, or the value of a name
that the section uses, which a cell or a module of the package gives it. The code of a section includes the functions of
its chapter that it calls. A section without code, such as a summary, speaks of the whole notebook. For every other
number `test_chosen_numbers.py` has a row that says what it is.
"""

import ast
import importlib
import inspect
import json
import math
import re
import textwrap
from functools import cache
from pathlib import Path

import numpy as np
from subnorm_book.evidence.chapter_code import PACKAGE, ChapterCode

from tools import checkout
from tools.refresh import notebooks

_ONES = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
_ONES = ["", *_ONES.split(), "eighteen", "nineteen"]
_ROUND = "twenty thirty forty fifty sixty seventy eighty ninety"
_TENS = dict(zip(_ROUND.split(), range(20, 100, 10), strict=True))
#: From eleven on: smaller ones are in every second sentence
WORDS = {word: k for k, word in enumerate(_ONES) if k > 10} | {
    f"{tens}-{_ONES[one]}".rstrip("-"): ten + one for tens, ten in _TENS.items() for one in range(10)
}
#: A marked number; a whole number of steps or seeds, which needs no mark; and a number in words
GIVEN = re.compile(
    r"\{given\}`([^`]*)`|(?<![\w.,:`^=/-])(\d+)(?=\s(?:steps|seeds|texts|rounds)\b)|"
    rf"(?<![\w/#-])({'|'.join(sorted(WORDS, key=len, reverse=True))})(?![\w-])",
    flags=re.IGNORECASE,
)
HEADING = re.compile(r"^(#{1,2}) ", flags=re.MULTILINE)


def sections(cells):
    """The cells of a notebook, in groups: what is above the first ## heading, and each section of that level."""
    found = [[]]
    for cell in cells:
        if cell["cell_type"] == "markdown" and HEADING.match("".join(cell["source"])):
            found.append([])
        found[-1].append(cell)
    return found


def source(cell):
    return "".join(cell["source"]).replace("\n%", "\n# %").replace("\n!", "\n# !")


@cache
def tree_of(text):
    return ast.parse(text)


def parsed(cells, code):
    return tuple(tree_of(code.expanded(source(cell))) for cell in cells if cell["cell_type"] == "code")


@cache
def of_notebook(root, *sources):
    """Of a notebook with these cells of code: what is behind them, and their trees."""
    cells = [{"cell_type": "code", "source": text} for text in sources]
    code = ChapterCode(cells, root)
    return code, parsed(cells, code)


@cache
def numbers_in(node):
    """Every number that an expression writes out, and the values of arithmetic on such numbers: (40, 120), 2**15."""
    found = set()
    for part in ast.walk(node):
        if isinstance(part, ast.expr):
            try:
                value = ast.literal_eval(part) if not isinstance(part, ast.BinOp) else arithmetic(part)
            except (ValueError, TypeError, SyntaxError, MemoryError, ZeroDivisionError, OverflowError):
                continue
            if isinstance(value, int | float) and not isinstance(value, bool):
                found.add(value)
    return found


def arithmetic(node):
    """The value of an expression of numbers alone."""
    if all(isinstance(p, ast.BinOp | ast.UnaryOp | ast.Constant | ast.operator | ast.unaryop) for p in ast.walk(node)):
        return eval(compile(ast.Expression(node), "<number>", "eval"), {"__builtins__": {}})
    raise ValueError("it has names")


@cache
def module_tree(name):
    path = checkout.ROOT / Path(*name.split(".")).with_suffix(".py")
    package = checkout.ROOT.joinpath(*name.split("."), "__init__.py")
    file = path if path.is_file() else package
    return ast.parse(file.read_text("utf-8")) if file.is_file() else None


@cache
def module_numbers(name):
    """The numbers of a module's constants, in capitals, by name, and the defaults of its functions' arguments."""
    tree, found = module_tree(name), {}
    for node in tree.body if tree else []:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for part in ast.walk(target):
                    if isinstance(part, ast.Name):
                        found.setdefault(part.id, set()).update(numbers_in(node.value))
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            functions = [part for part in ast.walk(node) if isinstance(part, ast.FunctionDef)]
            values = [d for f in functions for d in [*f.args.defaults, *f.args.kw_defaults] if d is not None]
            found.setdefault(node.name, set()).update(*map(numbers_in, values), set())
    return found


@cache
def imported(trees):
    """The names that imports of the package bind in a notebook: {name: (module, name in it, or "" for the module)}."""
    found = {}
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("subnorm"):
            for alias in node.names if node.module != PACKAGE else ():
                whole = f"{node.module}.{alias.name}"
                module = module_tree(whole) is not None
                found[alias.asname or alias.name] = (whole, "") if module else (node.module, alias.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("subnorm"):
                    found[alias.asname or alias.name] = (alias.name, "")
    return found


@cache
def assigned(trees):
    """{name: numbers} of the plain assignments in a notebook's cells; a name that is given twice has both."""
    found = {}
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for part in ast.walk(target):
                    if isinstance(part, ast.Name):
                        found.setdefault(part.id, set()).update(numbers_in(node.value))
        elif isinstance(node, ast.For):
            for part in ast.walk(node.target):
                if isinstance(part, ast.Name):
                    found.setdefault(part.id, set()).update(numbers_in(node.iter))
        elif isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, set()).update(numbers_in(node))
    return found


def numbers_of(section, notebook):
    """The numbers that the code of a section uses; those of the notebook if the section has no code."""
    sources = ("".join(cell["source"]) for cell in notebook if cell["cell_type"] == "code")
    code, whole = of_notebook(checkout.ROOT, *sources)
    own = parsed(section, code) or whole
    modules, names, found = imported(whole), assigned(whole), set()
    found |= set().union(*(numbers for name, numbers in names.items() if name.isupper()))
    for tree in own:
        found |= numbers_in(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                found |= names.get(node.id, set())
                if node.id in modules:
                    module, name = modules[node.id]
                    known = module_numbers(module)
                    found |= known.get(name, set()) if name else set().union(*known.values(), set())
    return found


def plain(text):
    """A power of ten as Python writes it: "6 × 10⁻⁸" as "6e-8"."""
    power = re.fullmatch(r"(?:(.*)\u00a0×\u00a0)?10([⁻⁰¹²³⁴-⁹]+)", text)
    exponent = power and power[2].translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
    return f"{power[1] or 1}e{exponent}" if power else text


def value(text):
    """The number that a reader sees: "260 032", "1e-6", "6 × 10⁻⁸", "10000"."""
    if text in WORDS:
        return float(WORDS[text])
    return float(plain(text).replace("\u202f", "").replace(" ", "").replace(",", "").replace("−", "-").rstrip("%"))


TEST = re.compile(r"test:(tests/[\w/]+\.py)::(\w+)")
CLAIM = re.compile(r"\{claim\}`([^`]*)`")
TO_A_PAGE = re.compile(r"\[[^][]*\]\([^():]*\.ipynb[^()]*\)")  # its title may hold a number
PARAGRAPH = re.compile(r"\n\s*\n|\n(?=[-|] |\d+\. |#)")


@cache
def test_functions(path):
    tree = ast.parse((checkout.ROOT / path).read_text("utf-8"))
    return {node.name: numbers_in(node) for node in tree.body if isinstance(node, ast.FunctionDef)}


@cache
def claimed():
    """{claim: numbers} of the cells that assert a claim."""
    found = {}
    for path in notebooks():
        cells = json.loads(path.read_text("utf-8"))["cells"]
        for cell in (cell for cell in cells if cell["cell_type"] == "code"):
            claims = [tag for tag in cell["metadata"].get("tags", []) if tag.startswith("claim:")]
            numbers = numbers_of([cell], cells) if claims else set()
            for claim in claims:
                found.setdefault(claim.removeprefix("claim:"), set()).update(numbers)
    return found


def numbers_of_claims(paragraph):
    """The numbers in the tests and in the cells on which the claims of a paragraph rest."""
    tests = [test_functions(path).get(name, set()) for path, name in TEST.findall(paragraph)]
    words = " ".join(CLAIM.findall(paragraph)).split()
    return set().union(*tests, *(claimed().get(word.removeprefix("claim:"), set()) for word in words))


def named(expression):
    """The numbers that an expression gives, such as "after_pre_ln.STEPS"; those in its code, if it is a function."""
    names = {"np": np, "math": math, "json": json, "checkout": checkout}
    for word in re.findall(r"(?<![\w.'])[A-Za-z_]\w*", expression):
        rooms = [f"subnorm_classroom.{room}" for room in ("sheets", "grading", "reports")]
        packages = ("subnorm_lab.experiments", "subnorm.timing", *rooms, "subnorm_lab.museum", "subnorm_lab", "subnorm")
        for module in (f"{package}.{word}" for package in packages if module_tree(f"{package}.{word}")):
            names[word] = importlib.import_module(module)
    found = eval(expression, names)
    if callable(found):
        return numbers_in(ast.parse(textwrap.dedent(inspect.getsource(found))))
    return {float(item) for item in np.ravel(found)}


def rounded_to(shown, number):
    """Whether a number is this one, rounded to the digits that are shown."""
    if shown in WORDS:
        return number == WORDS[shown]
    digits = len(plain(shown).replace(".", "").lstrip("0").split("e")[0].replace(" ", "").rstrip("%"))
    return math.isclose(float(f"{number:.{max(digits, 1) - 1}e}"), value(shown), rel_tol=1e-9)


def agrees(shown, numbers):
    return any(math.isclose(value(shown), number, rel_tol=1e-12) for number in numbers)


def in_text(text, numbers=frozenset()):
    """(number, its sentence, whether code gives it) for each chosen number of a Markdown text."""
    for paragraph in PARAGRAPH.split(TO_A_PAGE.sub("", text)):
        for match in GIVEN.finditer(paragraph):
            number = match[1] or match[2] or match[3].lower()
            if not match[1] and ("{cite" in paragraph or "bib:" in paragraph):
                continue  # somebody else's steps
            around = paragraph[max(0, match.start() - 60) : match.end() + 40].replace("\n", " ")
            known = numbers | numbers_of_claims(paragraph)
            if re.match(r"\s*(%|per cent)", paragraph[match.end() :]):
                known |= {100 * number for number in known}
            yield number, around, agrees(number, known)


def in_notebook(cells):
    """The same for a notebook."""
    for section in sections(cells):
        texts = ["".join(cell["source"]) for cell in section if cell["cell_type"] == "markdown"]
        numbers = numbers_of(section, cells) if any(GIVEN.search(text) for text in texts) else set()
        for text in texts:
            yield from in_text(text, numbers)
