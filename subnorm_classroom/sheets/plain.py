"""Convert the book's Markdown to plain Markdown: JupyterLab and Colab have no roles, admonitions or macros."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from subnorm_lab.checks import SETS
from subnorm_lab.checks.exercise import totals

MACROS = {r"\LN": r"\operatorname{LN}", r"\E": r"\mathbb{E}"}  # as in _config.yml
BOXES = {"admonition", "note", "hint", "tip", "warning", "important"}
FENCE = re.compile(r"\s*(`{3,}|:{3,})(?:\{([\w-]+)\})?(.*)")
ROLE = re.compile(r"\{([a-z][a-z:.-]*)\}`([^`]+)`")


def plain(text: str, notebooks: Path) -> str:
    """The text as plain Markdown; a folded box becomes <details>.

    Args:
        text: of one Markdown cell.
        notebooks: the folder of the chapters, whose titles replace links to them.

    Raises:
        ValueError: a role or a directive that has no plain form.
    """
    return "\n".join(blocks(text.split("\n"), notebooks))


def blocks(lines: list[str], notebooks: Path) -> Iterator[str]:
    rest = iter(lines)
    for line in rest:
        opened = FENCE.fullmatch(line)
        if not opened:
            yield words(line, notebooks)
            continue
        fence, name, title = opened.groups()
        inside: list[str] = []
        for inner in rest:
            if inner.strip() == fence:
                break
            inside.append(inner)
        else:
            raise ValueError(f"{line.strip()!r} is never closed: add a line {fence}")
        if not name:  # code
            yield from [line, *inside, fence]
        elif name in BOXES:
            yield from box(words(title.strip(), notebooks) or name.capitalize(), inside, notebooks)
        else:
            raise ValueError(f"a sheet cannot show {{{name}}}; use an admonition, or tag the cell solution-only")


def box(title: str, inside: list[str], notebooks: Path) -> Iterator[str]:
    options = [line for line in inside if re.fullmatch(r"\s*:[\w-]+:.*", line)]
    body = "\n".join(blocks([line for line in inside if line not in options], notebooks)).strip("\n")
    if any("dropdown" in option for option in options):
        yield from ["<details>", f"<summary>{title}</summary>", "", body, "", "</details>"]
    else:
        yield from [f"> **{title}**", ">", *(f"> {line}".rstrip() for line in body.split("\n"))]


def words(line: str, notebooks: Path) -> str:
    """A line without roles, macros and equation labels."""
    line = re.sub(r"(\$\$)\s*\([\w-]+\)\s*$", r"\1", line)
    for macro, meaning in MACROS.items():
        line = re.sub(re.escape(macro) + r"(?![A-Za-z])", lambda _, meaning=meaning: meaning, line)  # type: ignore[misc]
    return ROLE.sub(lambda found: role(found[1], found[2], notebooks), line).rstrip()


def role(name: str, text: str, notebooks: Path) -> str:
    shown, _, target = text.partition(" <")
    if name == "term":
        return shown
    if name == "given":
        return text
    if name == "math":
        return f"${text}$"
    if name == "claim":
        return ""
    if name == "exercises" and text in SETS:
        return totals(SETS[text])
    if name == "doc":
        return shown if target else f"*{title_of(notebooks / f'{Path(text).name}.ipynb', text)}*"
    raise ValueError(f"a sheet cannot show {{{name}}}`{text}`; write it in words, or tag the cell solution-only")


def title_of(path: Path, target: str) -> str:
    """The first heading of a notebook."""
    if not path.is_file():
        raise ValueError(f"{{doc}}`{target}` must name a chapter: there is no {path.name}")
    cells = json.loads(path.read_text("utf-8"))["cells"]
    found = re.search(r"^# (.+)$", "".join(cells[0]["source"]), re.MULTILINE)
    if not found:
        raise ValueError(f"{path.name} must begin with a heading")
    return found[1]
