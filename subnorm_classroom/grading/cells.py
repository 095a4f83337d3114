"""Read the code cells of a submitted notebook, and flag suspicious code without running it."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from subnorm_classroom.grading.sandbox import COURSE

IMPORT = re.compile(r"\b(?:import|from)[ \t]([^\n#]*)")  # linear in the length of a line

WATCHED = "os sys io inspect socket subprocess ctypes gc importlib builtins pathlib shutil signal threading pickle"
WATCHED += " traceback"

#: A norm of PyTorch or of the course by any of its names: F.layer_norm, torch.native_layer_norm, nn.GroupNorm.
NORM = r"(?i:layer|rms|group|batch|instance)_?(?i:norm)"
#: From a library under another name. The brackets are taken to their end, so that a text is read once.
FROM_LIBRARY = re.compile(r"\bfrom\s+(?!subnorm)(torch)?[\w.]+\s+import\s*(\([^)]*|[^\n#]*)")

OWN_ANSWER = "takes the course's own answer"
FLAGS = {
    "imports more of subnorm than checks": r"\b(?:from|import)\s+subnorm(?:_\w+)?(?:\.|\s+import\s+)(?!\s|checks\b)",
    "uses eval, exec or __import__": r"\b(?:eval|exec|__import__)\s*\(",
    "opens files": r"(?<![\w.])open\s*\(|\b(?:fromfile|memmap|loadtxt|genfromtxt|read_text|read_bytes|read_csv)\s*\(",
    OWN_ANSWER: r"\.\s*reference\b|\bchecks\s*\.\s*(?:ex\d|SETS\b)",
    "takes a function apart": r"__(?:closure|code|globals|dict|self|func|wrapped|subclasses|getattribute|traceback)__"
    r"|__builtins__|\b(?:tb_frame|tb_next|f_back|f_locals|f_globals|f_builtins|gi_frame|cr_frame|ag_frame)\b"
    r"|cell_contents|\bvars\s*\(",
    "computes the name of an attribute": r"\bgetattr\s*\((?![^,()\n]{0,80},\s*(?:\"\w+\"|'\w+')\s*[,)])",
    "uses a ready-made norm": rf"(?<!\bchecks)(?<!\bself)\.\s*\w*{NORM}"
    rf"|\b(?:getattr|attrgetter|methodcaller)\s*\([^\"'\n]{{0,80}}[\"']\w*{NORM}",
}

MOST_CODE = 10 << 20  # letters in the code cells of a notebook; a sheet has 20,000
MOST_BRACKETS = 500_000  # in a notebook without the parts that Jupyter makes, and in those
MOST_COMMAS = 5_000_000  # in it: a list takes far more memory than its text, a picture pasted into a text does not
#: The parts of a notebook that no answer is in: results, pasted pictures, the state of widgets.
MADE_PART = re.compile(rb'"(?:outputs|attachments|widgets)"\s*:\s*(?=[\[{])')
TO_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+[\[\]{}]', re.DOTALL)  # and over all strings


@dataclass(frozen=True)
class Cell:
    """A code cell: its number (from 1, counting all cells), the tags that matter here, and its source."""

    number: int
    tags: tuple[str, ...]
    source: str


class BrokenNotebook(Exception):
    """A file that is not a notebook; the argument is the diagnosis."""


def cells_of(data: bytes, set_name: str, names: Sequence[str]) -> list[Cell]:
    """The code cells of a notebook; BrokenNotebook if the file is not one, or belongs to another sheet."""
    data = without_outputs(data)
    if data.count(b"[") + data.count(b"{") > MOST_BRACKETS or data.count(b",") > MOST_COMMAS:
        raise BrokenNotebook("too_large")
    try:
        book = json.loads(data)
        cells = [
            (k, cell.get("metadata") or {}, "".join(cell["source"] or ""), str(cell.get("id")))
            for k, cell in enumerate(book["cells"], 1)
            if cell["cell_type"] == "code"
        ]
        found = [
            Cell(k, tuple(tag for tag in ("setup", "solution-only") if tag in (meta.get("tags") or ())), source)
            for k, meta, source, _ in cells
        ]
        ids = [str((meta.get("nbgrader") or {}).get("grade_id", "")) for _, meta, _, _ in cells]
        ids += [name for *_, name in cells]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, MemoryError) as error:
        raise BrokenNotebook("broken_notebook") from error
    if sum(len(cell.source) for cell in found) > MOST_CODE:
        raise BrokenNotebook("too_large")
    if not any(cell.source.strip() for cell in found):
        raise BrokenNotebook("empty")
    source = "\n".join(cell.source for cell in found)
    defines = any(re.search(rf"\b{re.escape(name)}\b", source) for name in names)
    if not defines and not any(name.startswith(f"{set_name}-") for name in ids):
        raise BrokenNotebook("wrong_notebook")
    return found


def without_outputs(data: bytes) -> bytes:
    """A notebook without its `MADE_PART`s, which may be large; not parsed, so that lists in lists take no memory."""
    parts, at, brackets = [], 0, 0
    while found := MADE_PART.search(data, at):  # a quote inside a string has a backslash: this is a key
        parts.append(data[at : found.end()])
        at = start = found.end()
        depth = 0
        while bracket := TO_BRACKET.match(data, at):
            at = bracket.end()
            depth += 1 if data[at - 1] in b"[{" else -1
            brackets += 1
            if depth <= 0 or brackets > MOST_BRACKETS:
                break
        if depth:  # it does not end, or not soon enough
            return data
        parts.append(b"[]" if data[start] == ord("[") else b"{}")
    return b"".join([*parts, data[at:]])


def flags_of(cells: Sequence[Cell]) -> list[str]:
    """Flags for a person to review; they change no mark."""
    source = "\n".join(cell.source for cell in cells)
    imported = {word for line in IMPORT.findall(source) for word in re.findall(r"\w+", line)}
    found = {f"imports {name}" for name in WATCHED.split() if name in imported}
    found |= {flag for flag, pattern in FLAGS.items() if re.search(pattern, source)}
    if "SETS" in imported:
        found.add(OWN_ANSWER)
    names = FROM_LIBRARY.findall(source)
    if any(re.search(NORM, some) or (torch and re.match(r"\s*\(?\s*\*", some)) for torch, some in names):
        found.add("uses a ready-made norm")
    return sorted(found)


def solution_of(set_name: str) -> list[Cell] | None:
    """The code cells of the sheet with its solutions; None if only the package is installed, not the course."""
    for path in sorted((COURSE / "notebooks/exercises").glob(f"{set_name}-*.ipynb")):
        cells = cells_of(path.read_bytes(), set_name, [])
        return [cell for cell in cells if "solution-only" not in cell.tags]  # students do not get those
    return None


def defines(name: str, cell: Cell) -> bool:
    """Whether a cell defines a name by def, class, assignment or import."""
    pattern = rf"\b(?:def|class)\s+{re.escape(name)}\b|^[ \t]*{re.escape(name)}[ \t]*=[^=]"
    imported = any(re.search(rf"\b{re.escape(name)}\b", line) for line in IMPORT.findall(cell.source))
    return imported or bool(re.search(pattern, cell.source, re.MULTILINE))


def longest(name: str, cells: Sequence[Cell]) -> int:
    """The number of lines of the longest cell that defines an answer: the largest possible line number of an answer."""
    return max((cell.source.count("\n") + 1 for cell in cells if defines(name, cell)), default=0)
