"""Find the tests that a change can affect: `python3 course.py test changed`.

A file depends on the modules that it imports, discovers or names in a string, and on its package's data files. A test
also depends on the files and folders that it names. A change affects every test that depends on a changed file,
directly or indirectly. The inputs of the built pages are listed here by hand.
"""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

ROOTS = ("", "tests/", "book/")  # where an import finds a module, as in pyproject.toml
# A change of one of these can affect every test.
ALL = ("pyproject.toml", "conftest.py", "constraints.txt", "requirements*.txt", "tools/affected.py", ".ci/*")
# The inputs of the pages, ...
PAGES = ("book/**/*", "notebooks/**/*.ipynb", "_config.yml", "_toc.yml", "tools/book.py", "subnorm/live*")
READ_PAGES = ("tests/book", "tests/browser", "tests/notebooks")
# ... and of the API pages.
TEXTS = ("subnorm/**/*.py",)
READ_TEXTS = ("tests/book", "tests/browser/test_every_page_on_a_desk.py", "tests/browser/test_every_page_on_a_phone.py")


def changed(root: Path) -> list[str]:
    """The files that differ from the last commit, including new and deleted ones."""
    return sorted(line[3:] for line in git(root, "status", "--porcelain", "--untracked-files=all", "--no-renames"))


def git(root: Path, *words: str) -> list[str]:
    """The entries that git prints, with unquoted names."""
    try:
        done = subprocess.run(["git", *words, "-z"], cwd=root, check=True, capture_output=True, encoding="utf-8")
    except (OSError, subprocess.CalledProcessError):
        sys.exit("To find changes, this needs git and a clone of the repository.")
    return [line for line in done.stdout.split("\0") if line]


def reached(files: Iterable[str], root: Path) -> list[str] | None:
    """The test files, folders and notebooks that a change of `files` can affect; None for all of them."""
    files = set(files)
    if any(matches(file, ALL) for file in files):
        return None
    found: set[str] = set()
    if any(matches(file, PAGES) for file in files):
        found.update(READ_PAGES)
    if any(matches(file, TEXTS) for file in files):
        found.update(READ_TEXTS)
    found.update(file for file in closure(files, users(root)) if is_test(file) and (root / file).exists())
    inside = tuple(f"{folder}/" for folder in found)
    return sorted(file for file in found if not file.startswith(inside))


def closure(files: Iterable[str], needed_by: dict[str, set[str]]) -> set[str]:
    """The files and everything that depends on them, directly or indirectly."""
    found: set[str] = set()
    todo = list(files)
    while todo:
        file = todo.pop()
        if file not in found:
            found.add(file)
            todo += needed_by.get(file, ())
    return found


def matches(file: str, patterns: Iterable[str]) -> bool:
    return any(re.fullmatch(expression(pattern), file) for pattern in patterns)


def expression(pattern: str) -> str:
    """A regular expression for a path pattern: * matches within a name, ** matches any folders."""
    return re.escape(pattern).replace(r"\*\*/", "(?:.*/)?").replace(r"\*", "[^/]*")


def is_test(file: str) -> bool:
    name = PurePosixPath(file)
    if name.suffix == ".ipynb":
        return name.parts[0] == "notebooks" and "student" not in name.parts
    return name.parts[0] == "tests" and name.name.startswith("test_") and name.suffix == ".py"


def users(root: Path) -> dict[str, set[str]]:
    """For each file, the files that depend on it."""
    files = set(git(root, "ls-files", "--cached", "--others", "--exclude-standard"))  # includes deleted files
    names: dict[str, set[str]] = {}  # from the name of a file or folder to its files
    for file in files:
        path = PurePosixPath(file)
        names.setdefault(path.name, set()).add(file)
        for folder in [*path.parents][:-1]:
            names.setdefault(str(folder), set()).add(file)
    found: dict[str, set[str]] = {}
    for file in files:
        for needed in needs(file, files, names, root) if (root / file).exists() else ():
            found.setdefault(needed, set()).add(file)
    return found


def needs(file: str, files: set[str], names: dict[str, set[str]], root: Path) -> Iterator[str]:
    """The files that a file depends on: by import or by name, the conftest.py of its folders, and package data."""
    path = PurePosixPath(file)
    if path.suffix not in (".py", ".ipynb"):
        return
    for folder in path.parents:
        for name in ("conftest.py", "__init__.py"):
            if f"{folder}/{name}" in files:
                yield f"{folder}/{name}"
    if path.name == "__init__.py" and "pkgutil" in (root / file).read_text("utf-8"):
        yield from names[str(path.parent)]  # it discovers its modules
    tree = ast.parse(code((root / file).read_text("utf-8"), path.suffix))
    for node in ast.walk(tree):
        for module in modules(node, file):
            yield from found_in(module, files)
    for text in texts(tree):
        for module in re.findall(r"subnorm(?:\.\w+)+", text):
            yield from found_in(module, files)
        if path.parts[0] == "tests":
            yield from names.get(text.strip("./"), ())
            yield from names.get(PurePosixPath(text).name, ()) if PurePosixPath(text).suffix else ()
    if path.name == "__init__.py":  # records, pictures and scripts in the package
        yield from data_of(path.parent, names)


def texts(tree: ast.Module) -> Iterator[str]:
    """The strings of a program, except its docstrings."""
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value


def data_of(package: PurePosixPath, names: dict[str, set[str]]) -> Iterator[str]:
    """The non-Python files of a package, without those of its subpackages."""
    inner = {str(PurePosixPath(file).parent) for file in names.get("__init__.py", ())} - {str(package)}
    for file in names[str(package)]:
        folders = {str(folder) for folder in PurePosixPath(file).parents}
        deeper = {folder for folder in folders & inner if folder.startswith(f"{package}/")}
        if not deeper and PurePosixPath(file).suffix not in (".py", ".ipynb"):
            yield file


def code(text: str, suffix: str) -> str:
    """The Python code of a file. Magic lines of a notebook become `pass`: they import nothing."""
    if suffix == ".py":
        return text
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    return "\n".join(re.sub(r"(?m)^\s*[%!].*$", "pass", "".join(cell["source"])) for cell in cells)


def modules(node: ast.AST, file: str) -> Iterator[str]:
    """The modules that a statement may import."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        start = ".".join(PurePosixPath(file).parts[: -node.level]) if node.level else ""
        module = ".".join(part for part in (start, node.module) if part)
        yield module
        yield from (f"{module}.{alias.name}" for alias in node.names)


def found_in(module: str, files: set[str]) -> Iterator[str]:
    """The files of a module and its parent packages, if it is one of ours."""
    parts = module.split(".")
    for root in ROOTS:
        for k in range(1, len(parts) + 1):
            place = root + "/".join(parts[:k])
            yield from ({f"{place}.py", f"{place}/__init__.py", f"{place}/__main__.py"} & files)
