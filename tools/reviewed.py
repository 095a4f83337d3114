"""What each page quotes, claims and calls right, in one file, so that a change of meaning shows in the diff.

    python -m tools.reviewed

writes `tests/book/reviewed.json`. A test compares it with the pages. Rewording a page changes nothing in it. Another
number quoted in a section, other evidence for a claim, another subject of a claim, another right answer, or another
number in the words for a figure does. Run the command, read the diff, and commit it only if every line is meant.
"""

import ast
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "book"))

from subnorm_book import notebook_text  # noqa: E402, it lies in the book's folder
from subnorm_book.evidence.chapter_code import ChapterCode  # noqa: E402

from tools.refresh import notebooks  # noqa: E402

STORED = ROOT / "tests" / "book" / "reviewed.json"

HEADING = re.compile(r"^#{1,4} (.*)$", flags=re.MULTILINE)
QUOTE = re.compile(r"\{val\}`([^`]*)`")
CLAIM = re.compile(r"\{claim\}`([^`]*)`")
BOX = re.compile(r"^:::\{(predict|quick-check)\} (\S+)\n(.*?)^:::", flags=re.MULTILINE | re.DOTALL)
RIGHT = re.compile(r"^- \[x\] (.*?)(?=^\s*- |^:::|\Z)", flags=re.MULTILINE | re.DOTALL)
BEFORE = re.compile(r"\n\s*\n|\n(?=[-|:] )|(?<=[.!?])[*_\"”)]*\s")
#: What a claim can be about: taking one of these for another turns it round
SUBJECTS = re.compile(r"\b(Pre-LN|Post-LN|LayerNorm|RMSNorm|BatchNorm|GroupNorm|QK-norm|sandwich|NumPy|PyTorch)\b")

NUMBERS = re.compile(r"\b(?:none|one|two|three|four|five|six|seven|eight|nine|ten|twice|half|all|both)\b")


def pages():
    """{name of a page: its Markdown, and the code cells by their claims}"""
    for path in sorted([*ROOT.glob("book/*.md"), *notebooks()]):
        if path.suffix == ".md":
            yield path, path.read_text("utf-8"), []
        else:
            cells = notebook_text.read_file(path)["cells"]
            texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
            yield path, "\n\n".join(texts), cells


def quotes(text):
    """{heading: the numbers quoted below it, in their order}"""
    parts = HEADING.split(text)
    found = {}
    for title, body in zip(["", *parts[1::2]], parts[::2], strict=True):
        if keys := QUOTE.findall(title + body):
            found.setdefault(title, []).extend(keys)
    return found


def claims(text):
    """{claim: what it rests on, and what its sentence is about}"""
    found = {}
    for match in CLAIM.finditer(text):
        name, *targets = match[1].split()
        sentence = [part for part in BEFORE.split(CLAIM.sub("", text[: match.start()]).rstrip()) if part.strip()]
        about = SUBJECTS.findall(sentence[-1]) if sentence else []
        found[name] = [*targets, *about]
    return found


def sources(cells):
    """The cells, each with its source, and that of the functions of its chapter that it calls."""
    code = ChapterCode(cells, ROOT)
    for cell in cells:
        source = "".join(cell["source"])
        yield cell, code.expanded(source) if cell["cell_type"] == "code" else source


def cells_of(cells):
    """{claim: the heading above the cell that asserts it, and the numbers said there}"""
    found, title = {}, ""
    for cell, source in sources(cells):
        if cell["cell_type"] == "markdown":
            title = [title, *HEADING.findall(source)][-1]
        else:
            for tag in cell["metadata"].get("tags", []):
                if tag.startswith("claim:"):
                    found[tag.removeprefix("claim:")] = [title, *re.findall(r"say\(\"(\w+)\"", source)]
    return found


def alts(cells):
    """{heading: the numbers in words in the texts that stand for its figures}"""
    found, title = {}, ""
    for cell, source in sources(cells):
        if cell["cell_type"] == "markdown":
            title = [title, *HEADING.findall(source)][-1]
            continue
        for call in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)):
            texts = [word.value for word in call.keywords if word.arg == "alt"]
            texts += call.args[1:] if getattr(call.func, "attr", "") == "show" else []
            pieces = [p.value for text in texts for p in ast.walk(text) if isinstance(p, ast.Constant)]
            if words := NUMBERS.findall(" ".join(piece for piece in pieces if isinstance(piece, str)).lower()):
                found.setdefault(title, []).extend(words)
    return found


def answers(text):
    """{the id of a box: its right answer}"""
    return {name: " ".join(right[1].split()) for _, name, body in BOX.findall(text) if (right := RIGHT.search(body))}


def found():
    """All of it, by page."""
    whole = {}
    for path, text, cells in pages():
        parts = {"quotes": quotes(text), "claims": claims(text), "cells": cells_of(cells), "answers": answers(text)}
        parts["alts"] = alts(cells)
        if any(parts.values()):
            whole[path.stem] = {name: part for name, part in parts.items() if part}
    return whole


if __name__ == "__main__":
    STORED.write_text(json.dumps(found(), indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(f"{STORED.relative_to(ROOT)}: read its diff")
