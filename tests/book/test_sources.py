"""The pages refer only to existing names of the package and entries of the bibliography."""

import ast
import importlib
import json
import re
from pathlib import Path

import pytest
from subnorm_book import notebook_text

from tools.refresh import notebooks

ROOT = Path(__file__).parents[2]


def code_names():
    """Every argument, local name, attribute and definition in the package."""
    names = set()
    for path in ROOT.glob("subnorm*/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.arg):
                names.add(node.arg)
            elif isinstance(node, ast.Name):
                names.add(node.id)
            elif isinstance(node, ast.Attribute):
                names.add(node.attr)
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(node.name)
    return names


def notation_names():
    rows = re.findall(r"^\|.*\|$", (ROOT / "book/notation.md").read_text("utf-8"), flags=re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[2])}


def test_notation_uses_the_names_of_the_code():
    names = notation_names()
    assert {"x", "eps", "rstd", "xhat", "gamma", "beta", "dy", "dx", "pre_ln"} <= names
    assert names - code_names() == set()


@pytest.mark.parametrize("module", ["subnorm.numpy", "subnorm.torch"])
def test_every_public_name_is_on_its_page(module):
    page = (ROOT / f"book/api/{module.split('.')[1]}.md").read_text("utf-8")
    listed = set(re.findall(r":: (\w+)$|`(\w+)`", page, flags=re.MULTILINE))
    assert set(importlib.import_module(module).__all__) - {a or b for a, b in listed} == set()


@pytest.mark.parametrize("package", ["subnorm_lab.experiments", "subnorm.timing"])
def test_every_module_is_on_its_page(package):
    page = (ROOT / f"book/api/{package.split('.')[1]}.md").read_text("utf-8")
    modules = {path.stem for path in ROOT.joinpath(*package.split(".")).glob("*.py") if not path.stem.startswith("__")}
    assert modules - set(re.findall(rf"automodule:: {re.escape(package)}\.(\w+)", page)) == set()


def test_every_reference_says_where_it_was_checked():
    text = (ROOT / "book/references.bib").read_text("utf-8")
    entries = re.findall(r"^(.*)\n@\w+\{(\w+),", text, flags=re.MULTILINE)
    assert len(entries) == len(re.findall(r"^@", text, flags=re.MULTILINE)) > 20
    assert [key for comment, key in entries if not comment.startswith("% checked: ")] == []


def test_every_reference_can_be_opened():
    entries = (ROOT / "book/references.bib").read_text("utf-8").split("\n@")[1:]
    assert [entry.split(",")[0] for entry in entries if not re.search(r"\b(url|doi)\s*=", entry)] == []


def test_every_reference_is_cited():
    keys = re.findall(r"^@\w+\{(\w+),", (ROOT / "book/references.bib").read_text("utf-8"), flags=re.MULTILINE)
    texts = [path.read_text("utf-8") for path in ROOT.glob("book/*.md")]
    texts += [json.dumps(notebook_text.read_file(path)) for path in notebooks()]
    roles = re.findall(r"\{(?:cite[\w:]*|claim)\}`([^`]+)`", "".join(texts))
    cited = set(re.findall(r"\w+", " ".join(roles)))
    assert [key for key in keys if key not in cited] == []
