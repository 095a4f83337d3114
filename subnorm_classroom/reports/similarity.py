"""Find the pairs of hand-ins that share unusual code, for a teacher to read; a pair is not a verdict.

It compares Python's tokens, without comments, layout, brackets and commas, and with one symbol for every name that a
student may choose. Fingerprints are hashes of `GRAM` tokens in a row, picked by winnowing: the smallest hash of each
`WINDOW` in a row, the rightmost if several are equal. So a passage of `GRAM + WINDOW - 1` equal tokens always has a
common fingerprint, wherever it occurs (Schleimer, Wilkerson & Aiken, "Winnowing: Local Algorithms for Document
Fingerprinting", SIGMOD 2003, https://doi.org/10.1145/872757.872770).

A fingerprint of the sheet, its solution, a named mistake, or other code of the course is no evidence. Any other one
adds 1/√m to the score of a pair, if m hand-ins besides the first have it: 1 if only the two do.
"""

import builtins
import contextlib
import functools
import hashlib
import itertools
import json
import keyword
import operator
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from subnorm_classroom.grading.cells import Cell
from subnorm_classroom.grading.sandbox import COURSE
from subnorm_classroom.sheets.release import change, read
from subnorm_lab.checks import SETS

GRAM = 8  # tokens
WINDOW = 4  # hashes
LEAST = 8  # score of a pair in the list; two independent sheets of our test bank reach 7 at most
LONGEST = 100_000  # characters of code in a hand-in; a sheet with answers has less than ten thousand
NO_TOKEN = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


class Token(NamedTuple):
    """A token in its normal form, and its place in the source."""

    text: str
    start: int
    end: int


@dataclass
class HandIn:
    """The code of a student, and its fingerprints without those that are no evidence."""

    student: str
    cells: list[Cell]
    own: frozenset[int]


@dataclass
class Pair:
    """Two hand-ins, the fingerprints that both have, and their score."""

    first: HandIn
    second: HandIn
    shared: list[int]
    score: float


def pairs(hand_ins: Sequence[HandIn]) -> list[Pair]:
    """The pairs whose score is at least `LEAST`, the highest first. Two without a common fingerprint never meet."""
    owners = defaultdict(list)
    for k, hand_in in enumerate(hand_ins):
        for value in hand_in.own:
            owners[value].append(k)
    shared = defaultdict(list)
    most = still_unusual(len(hand_ins))
    for value in sorted(owners):
        if 2 <= len(owners[value]) <= most:
            for pair in itertools.combinations(owners[value], 2):
                shared[pair].append(value)
    found = [
        Pair(hand_ins[a], hand_ins[b], values, sum((len(owners[value]) - 1) ** -0.5 for value in values))
        for (a, b), values in shared.items()
    ]
    found = [pair for pair in found if pair.score >= LEAST]
    return sorted(found, key=lambda pair: (-pair.score, pair.first.student, pair.second.student))


def still_unusual(hand_ins: int) -> int:
    """How many hand-ins of a class may have a fingerprint that counts: a quarter of them, but 3 to 20."""
    return min(20, max(3, hand_ins // 4))


def figures(pair: Pair) -> list[str]:
    """The score of a pair, how many fingerprints they share, and how many each has."""
    return [f"{pair.score:.1f}", *(str(len(prints)) for prints in (pair.shared, pair.first.own, pair.second.own))]


@functools.cache
def published() -> frozenset[int]:
    """The fingerprints of what every student has or can look up: sheets, solutions, mistakes, chapters, the package."""
    files = (
        path
        for name in ("subnorm/numpy", "subnorm/torch", "subnorm_lab/checks")
        for path in (COURSE / name).rglob("*.py")
    )
    texts = [path.read_text("utf-8") for path in files]
    texts += [getattr(m.answer, "text", "") for exercises in SETS.values() for ex in exercises for m in ex.mistakes]
    for path in (COURSE / "notebooks").rglob("*.ipynb"):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        of_sheet = path.parent.name != "notebooks"  # its hints and solutions have code, too
        texts += ["".join(cell["source"]) for cell in cells if of_sheet or cell["cell_type"] == "code"]
        if path.parent.name == "exercises":
            texts += of_variants(path)
    return frozenset(value for text in texts for value in hashes(tokens_of(text)))


def of_variants(path: Path) -> Iterator[str]:
    """The cells of a sheet as the students get them whose sheets ask for other variants."""
    name = path.name[:4]
    for ex in SETS[name]:
        for variant in ex.variants[1:]:
            book = read(path)
            change(book, name, ex.variant(variant.label))
            yield from (cell["source"] for cell in book["cells"] if cell["id"].startswith(f"{name}-{ex.number}-"))


@functools.lru_cache(10_000)  # most cells are those of the sheet
def winnowed(source: str) -> list[tuple[int, int]]:
    """(index of the first token, fingerprint) of each fingerprint of a cell."""
    values = hashes(tokens_of(source))
    windows = (range(k, min(k + WINDOW, len(values))) for k in range(max(1, len(values) - WINDOW + 1)))
    picked = {min(window, key=lambda k: (values[k], -k)) for window in windows if window}
    return [(k, values[k]) for k in sorted(picked)]


def hashes(tokens: Sequence[Token]) -> list[int]:
    """The hash of each `GRAM` tokens in a row. (Python's own hash of a text differs from run to run.)"""
    texts = [token.text for token in tokens]
    grams = (" ".join(texts[k : k + GRAM]).encode(errors="surrogatepass") for k in range(len(texts) - GRAM + 1))
    return [int.from_bytes(hashlib.blake2b(gram, digest_size=8).digest(), "big") for gram in grams]


def tokens_of(source: str) -> list[Token]:
    """The tokens of a cell. After a syntax error it goes on with the next line."""
    lines = [line + "\n" for line in source.split("\n")]
    starts = list(itertools.accumulate(map(len, lines), initial=0))
    left = iter(lines)
    found: list[Token] = []
    while operator.length_hint(left):
        first = len(lines) - operator.length_hint(left)
        before = ["", ""]
        with contextlib.suppress(tokenize.TokenError, SyntaxError):
            for kind, raw, (row, column), (last, end), _ in tokenize.generate_tokens(left.__next__):
                if kind not in NO_TOKEN and raw not in ("(", ")", ",", ";"):
                    place = starts[first + row - 1] + column, starts[first + last - 1] + end
                    found.append(Token(normal(kind, raw, before), *place))
                before = [before[1], raw]
    return found


def normal(kind: int, raw: str, before: Sequence[str]) -> str:
    """A token without what a student may choose; `before` are the two tokens before it."""
    if kind == tokenize.STRING:
        return "S"
    of_library = before[1] == "." and before[0] != "self"
    if kind != tokenize.NAME or of_library or keyword.iskeyword(raw) or hasattr(builtins, raw):
        return raw
    return "V"
