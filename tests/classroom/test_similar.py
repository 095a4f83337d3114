"""The list of similar hand-ins: disguised copies are in it; independent answers and what is published are not."""

import csv
import functools
import html
import inspect
import json
import math
import re
from collections import Counter
from html.parser import HTMLParser
from random import Random

import pytest
from checks import test_bank as bank
from classroom.hand_ins import cell, notebook, write_zip

from subnorm_classroom import __main__ as command_line
from subnorm_classroom.grading.cells import Cell
from subnorm_classroom.reports import similar, similarity
from subnorm_classroom.reports.similar_page import code, page
from subnorm_classroom.reports.similarity import (
    LEAST,
    HandIn,
    Pair,
    hashes,
    pairs,
    published,
    still_unusual,
    tokens_of,
    winnowed,
)
from subnorm_classroom.sheets.release import change, read, source_of, student
from subnorm_lab.checks import SETS

BACKWARD = """def residual_backward(dy, x, weight):
    # the Jacobian of the branch
    jacobian = np.where(x > 0, 1.0, 0.0)[..., None] * weight
    both = np.eye(x.shape[-1]) + jacobian
    return (both @ dy[..., None])[..., 0]
"""
PATHS = """def paths(x, weights):
    terms = []
    for index in range(2 ** len(weights)):
        product = np.eye(x.shape[-1])
        for bit, weight in zip(reversed(f"{index:0{len(weights)}b}"), weights, strict=True):
            product = product @ (weight if bit == "1" else np.eye(len(weight)))
        terms.append(x @ product)
    return np.array(terms)
"""
RENAMED = PATHS
for was, now in {"terms": "result", "index": "i", "product": "m", "weight": "w", "bit": "take"}.items():
    RENAMED = re.sub(rf"\b{was}\b", now, RENAMED)
REFORMATTED = """def residual_backward(
    dy,
    x,
    weight,
):
    jacobian = (np.where(x > 0, 1.0, 0.0)[..., None] * weight); both = (
        np.eye(x.shape[-1])
        + jacobian
    )

    return ((both @ dy[..., None])[..., 0])
"""
COMMENTED = """def residual_backward(dy, x, weight):
    # My own work, entirely.
    jacobian = np.where(x > 0, 1.0, 0.0)[..., None] * weight  # elementwise
    # now both
    both = np.eye(x.shape[-1]) + jacobian
    return (both @ dy[..., None])[..., 0]  # done
"""
REORDERED = """def residual_backward(dy, x, weight):
    identity = np.eye(x.shape[-1])
    n = 0
    slope = np.where(x > 0, 1.0, 0.0)[..., None] * weight
    n = n + 1
    return ((slope + identity) @ dy[..., None])[..., 0]
"""
COPIES = {
    "as it is": [BACKWARD],
    "renamed": [RENAMED],
    "reformatted": [REFORMATTED],
    "other comments": [COMMENTED],
    "statements in another order, and idle ones": [REORDERED],
    "functions in another order, in one cell": [RENAMED + "\n\n" + REFORMATTED],
    "one more parameter, in a class": [
        "class Mine:\n    def walk(self, x, weights):\n" + RENAMED.split("\n", 1)[1].replace("\n    ", "\n        ")
    ],
    "after an error": ["if x:\n        y = 'unfinished\n  z = 0  # nowhere near an indent\n" + RENAMED, "y = [x\n"],
}
IDLE = "idle = [k**2 for k in range(7) if k % 3 == 1][1:5]\n"
STREAM = """def stream(x, sublayers):
    edits = [x]
    for sublayer in sublayers:
        edits.append(sublayer(sum(edits)))
    return list(np.cumsum(edits, axis=0))
"""


@functools.cache
def released():
    book = student(read(source_of("ex01")), "ex01")
    return [cell["source"] for cell in book["cells"] if cell["cell_type"] == "code"]


def sheet(*cells):
    """The released sheet ex01 with more cells."""
    return notebook(*released(), *cells)


def listed(folder, out):
    """The rows of the list of a class."""
    assert command_line.main(["similar", "ex01", str(folder), "-o", str(out)]) == 0
    with (out / "similar.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def hand_in(name, *cells):
    own = {value for cell in cells for _, value in winnowed(cell)} - published()
    return HandIn(name, [Cell(k, (), cell) for k, cell in enumerate(cells, 1)], frozenset(own))


class Marks(HTMLParser):
    """The marked texts of each half, and all tags of a page."""

    def __init__(self, page):
        super().__init__()
        self.halves, self.tags, self.inside = [], set(), False
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.inside = tag == "mark"
        if tag == "h3":
            self.halves.append("")

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.halves[-1] += f"{data}\n"


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_a_disguised_copy_is_listed(copy, tmp_path):
    members = [("Ada.ipynb", sheet(BACKWARD, PATHS)), ("Bo.ipynb", sheet(*copy)), ("Cy.ipynb", sheet(STREAM))]
    write_zip(tmp_path / "class.zip", members)
    (row,) = listed(tmp_path / "class.zip", tmp_path / "out")
    assert (row["first"], row["second"]) == ("Ada", "Bo")
    assert float(row["score"]) >= LEAST


@pytest.mark.parametrize("copy", [REFORMATTED, COMMENTED, BACKWARD.replace("jacobian", "j").replace("both", "k")])
def test_layout_comments_and_names_change_nothing(copy):
    assert hand_in("", copy).own == hand_in("", BACKWARD).own


def test_a_token_has_its_place_and_a_form_without_names():
    """Also behind a line that is no Python."""
    source = "def f(x):  # why\n    self.mu = np.mean(x, 'last')\n   y = 0\nlen(z)\n"
    found = [(token.text, source[token.start : token.end]) for token in tokens_of(source)]
    line = [("V", "self"), (".", "."), ("V", "mu"), ("=", "="), ("V", "np"), (".", "."), ("mean", "mean"), ("V", "x")]
    assert found == [
        *[("def", "def"), ("V", "f"), ("V", "x"), (":", ":")],
        *[*line, ("S", "'last'")],
        *[("len", "len"), ("V", "z")],
    ]


def test_of_each_window_the_smallest_hash_counts_and_of_equal_ones_the_last():
    one = "1 + 2 + 3 + 4 + 5"  # 9 tokens: two in a row of 8, less than a window
    (first,) = winnowed(one)
    assert first[1] == min(hashes(tokens_of(one)))
    assert winnowed("1 + 2") == []
    (first,) = winnowed("1 + 2 + 3 * 4 + 5 - 6")  # 11 tokens: one window, and the smallest of its four is the first
    assert first[0] == 0
    assert [at for at, _ in winnowed("1; " * 12)] == [3, 4]  # five equal hashes, two windows


def test_how_many_may_share_what_is_unusual():
    assert [still_unusual(many) for many in (0, 12, 16, 19, 79, 80, 200)] == [3, 3, 4, 4, 19, 20, 20]


def test_the_page_shows_both_side_by_side_with_what_they_share(tmp_path):
    members = [("Ada.ipynb", sheet(IDLE, PATHS)), ("Bo.ipynb", sheet(RENAMED, STREAM)), ("Cy.ipynb", sheet())]
    write_zip(tmp_path / "class.zip", members)
    (row,) = listed(tmp_path / "class.zip", tmp_path / "out")
    page = (tmp_path / "out/similar.html").read_text("utf-8")
    assert "These pairs share unusual code. It’s for you to read, not a verdict." in page
    assert "3 hand-ins were compared." in page
    assert "1 of the hand-ins have too little code of their own" in page
    ada, bo = Marks(page).halves
    assert "for bit, weight in zip(reversed" in ada
    assert "for take, w in zip(reversed" in bo
    assert "idle" not in ada
    assert "cumsum" not in bo
    assert page.count("<h4>") == 2  # cells without a match are left out
    assert (row["score"], row["shared"]) == ("22.0", "22")
    assert int(row["first_own"]) == len(hand_in("", IDLE, PATHS).own) > 22


def independent(name):
    """The functions of the bank that answer each exercise of a set rightly, each by another way, and none twice."""
    used = set()
    for exercise in SETS[name]:
        answers = [
            answer for answer in bank.RIGHT[exercise.name] if getattr(answer, "__name__", "<lambda>") != "<lambda>"
        ]
        here = {inspect.getsource(answer) for answer in answers if answer.__module__.startswith("checks.")} - used
        used |= here
        yield sorted(here)


@pytest.mark.parametrize("name", SETS)
def test_independent_sheets_are_not_listed(name):
    """Many sheets put together from independent answers, each as if nobody else had used any of its code."""
    choices = [texts for texts in independent(name) if len(texts) > 1]
    own = {text: hand_in("", text).own for texts in choices for text in texts}
    random, found = Random(7), Counter()
    for _ in range(1000):
        both = zip(*(random.sample(texts, 2) for texts in choices), strict=True)
        first, second = (frozenset().union(*(own[text] for text in sheet)) for sheet in both)
        found[len(first & second)] += 1
    assert len(choices) >= 4
    assert len(first) > LEAST
    assert max(found) < LEAST
    assert pairs([HandIn("Ada", [], first), HandIn("Bo", [], second)]) == []


def test_the_sheet_its_solution_and_the_named_mistakes_are_no_evidence(tmp_path):
    solved = ["".join(cell["source"]) for cell in json.loads(source_of("ex01").read_bytes())["cells"]]
    mistakes = [m.answer.text for ex in SETS["ex01"] for m in ex.mistakes if hasattr(m.answer, "text")]
    for cells in ([], solved, mistakes):
        write_zip(tmp_path / "class.zip", [(f"{name}.ipynb", sheet(*cells)) for name in ("Ada", "Bo")])
        assert listed(tmp_path / "class.zip", tmp_path / "out") == []
        assert "No pair reaches that score." in (tmp_path / "out/similar.html").read_text("utf-8")


def test_the_solutions_of_other_variants_are_no_evidence():
    tried = 0
    for ex in SETS["ex04"]:
        for variant in ex.variants[1:]:
            book = read(source_of("ex04"))
            change(book, "ex04", ex.variant(variant.label))
            mine = {cell["source"] for cell in book["cells"]}
            tried += len(mine - {cell["source"] for cell in read(source_of("ex04"))["cells"]})
            assert hand_in("", *mine).own == frozenset()
    assert tried > 2


def test_code_that_many_have_counts_less_and_then_nothing():
    scores = {}
    for many in (2, 5, 6, 7):
        class_ = [hand_in(f"S{k}", PATHS) for k in range(many)] + [hand_in(f"T{k}") for k in range(24 - many)]
        scores[many] = sorted({round(pair.score, 6) for pair in pairs(class_)})
    (two,) = scores[2]
    assert two == len(hand_in("", PATHS).own) >= 2 * LEAST
    assert scores[5] == [two / 2]
    assert scores[6] == [round(two / math.sqrt(5), 6)]
    assert scores[7] == []  # more than a quarter of the class


def test_the_pairs_are_sorted_and_only_those_that_share_something_meet():
    class_ = [hand_in("Ada", PATHS), hand_in("Bo", RENAMED, BACKWARD), hand_in("Cy", BACKWARD), hand_in("Di", STREAM)]
    found = [(pair.first.student, pair.second.student, round(pair.score)) for pair in pairs(class_)]
    assert [pair[:2] for pair in found] == [("Ada", "Bo"), ("Bo", "Cy")]
    assert found[0][2] > found[1][2]


def test_broken_and_hostile_hand_ins_stop_nothing_and_stay_text(tmp_path):
    evil = "</pre><script>alert(1)</script><img src=x onerror=alert(1)>"
    hidden = "# \N{RIGHT-TO-LEFT OVERRIDE}hidden\x00\x1b[2J\n"
    shared = f"{PATHS.replace('terms = []', f'terms = [] or {evil!r}')}{hidden}"
    members = [
        ("=Ada <b>.ipynb", sheet(shared)),
        ("Bo.ipynb", sheet(shared)),
        ("Cy.ipynb", b"{"),
        ("Di.ipynb", sheet("x = 1\n" * 20_000)),
        ("Ed.ipynb -> ", b"Bo.ipynb"),
        ("Flo.ipynb", sheet("x\ud800 = '\ud800' + y * z[3, 4] - 5 + ''' \\\n" + "(" * 500 + "\n\tif x:\n  y")),
        ("Gus.ipynb", sheet("\n".join(f"  {'(' * (k % 3)}x = 'a\n\ty" for k in range(3000)))),
        ("Hal", b""),
    ]
    write_zip(tmp_path / "class.zip", members)
    (row,) = listed(tmp_path / "class.zip", tmp_path / "out")
    assert (row["first"], row["second"]) == ("'=Ada <b>", "Bo")
    page = (tmp_path / "out/similar.html").read_text("utf-8")
    assert "default-src 'none'" in page
    assert Marks(page).tags.isdisjoint({"script", "img", "b", "iframe", "link"})
    assert not set(page) & {"\N{RIGHT-TO-LEFT OVERRIDE}", "\x00", "\x1b"}
    for who, problem in {
        "Cy": "broken_notebook", "Di": "too_much_code", "Ed": "unsafe_archive", "Hal": "no_notebook",
    }.items():  # fmt: skip
        assert f"<bdi>{who}</bdi> ({problem})" in page
    assert "4 hand-ins were compared." in page


def test_what_cannot_be_done_is_a_sentence(tmp_path, capsys):
    folder = tmp_path / "class"
    folder.mkdir()
    (folder / "Ada.ipynb").write_bytes(sheet())
    for source, out, says in (
        (tmp_path / "none", tmp_path / "out", "submissions must be a folder or a zip file"),
        (folder, folder / "out", "the list must not be inside the submissions"),
        (folder, folder / "Ada.ipynb/out", "the list must not be inside the submissions"),
        (folder, tmp_path / "file", "cannot be written to"),
    ):
        (tmp_path / "file").write_text("")
        assert command_line.main(["similar", "ex01", str(source), "-o", str(out)]) == 1
        said = capsys.readouterr().err
        assert said.startswith("similar: ")
        assert says in said
        assert said.count("\n") == 1


def test_the_same_class_gives_the_same_bytes_on_every_machine(tmp_path):
    assert hashes(tokens_of("f(a, b) [0] + 'c' * x.mean(-1)  # comment"))[0] == 8625232382651154923
    write_zip(tmp_path / "class.zip", [(f"{who}.ipynb", sheet(PATHS)) for who in ("Ada", "Bo", "Cy")])
    found = []
    for order in ("one", "two"):
        listed(tmp_path / "class.zip", tmp_path / order)
        found.append([(tmp_path / order / name).read_bytes() for name in ("similar.csv", "similar.html")])
    assert found[0] == found[1]


def test_a_cell_that_all_have_is_read_once(tmp_path):
    similarity.winnowed.cache_clear()
    write_zip(tmp_path / "class.zip", [(f"{k}.ipynb", sheet(f"x{k} = {k}")) for k in range(60)])
    assert listed(tmp_path / "class.zip", tmp_path / "out") == []
    assert similarity.winnowed.cache_info().misses <= 60 + len(released())


def test_the_page_says_what_it_compared_by_which_limits():
    class_ = [HandIn(f"S{k}", [], frozenset(range(k))) for k in range(6, 10)]
    text = " ".join(page("ex02", class_, [], {}).split())
    assert "4 hand-ins were compared." in text
    assert "A passage has at least 8 tokens; every one of 11 or more is found." in text
    assert "0 if more than 3 hand-ins have it. A pair is listed from a score of 8." in text
    assert "2 of the hand-ins have too little code of their own ever to be listed" in text  # with 6 and 7, not with 8
    assert "No pair reaches that score." in text


@pytest.mark.parametrize(
    ("many", "side_by_side", "note"),
    [(1, 1, []), (50, 50, []), (51, 50, ["1 more pair"]), (120, 50, ["70 more pairs"])],
)
def test_all_pairs_are_in_the_table_and_the_first_fifty_side_by_side(many, side_by_side, note):
    class_ = [
        (HandIn(f"A{k}", [], frozenset(range(20))), HandIn(f"B{k}", [], frozenset(range(30)))) for k in range(many)
    ]
    text = page("ex02", [], [Pair(*both, list(range(10)), 9.5) for both in class_], {})
    rows = [row.split("</td><td>") for row in re.findall(r"<tr><td>(.*)</td></tr>", text)]
    assert rows == [
        [
            f'<a href="#pair-{k + 1}"><bdi>A{k}</bdi></a>' if k < side_by_side else f"<bdi>A{k}</bdi>",
            *[f"<bdi>B{k}</bdi>", "9.5", "10", "20", "30"],
        ]
        for k in range(many)
    ]
    titles = re.findall(r'<h2 id="pair-(\d+)">(.*)</h2>', text)
    assert titles == [(f"{k + 1}", f"{k + 1}. <bdi>A{k}</bdi> and <bdi>B{k}</bdi>") for k in range(side_by_side)]
    assert re.findall(r"Only in the table: (.*)\.</p>", text) == note


def test_exactly_the_shared_tokens_are_marked_and_neighbours_share_a_mark():
    both = [hand_in("Ada", "# mine\nk = 0\ny = x @ w + b / 3\nprint(y)  # done\n"), hand_in("Bo", "z = a @ b + c / 3")]
    shared = sorted(both[0].own & both[1].own)
    assert len(shared) == 1  # the eight tokens from = to 3
    text = page("ex02", both, [Pair(*both, shared, 1.0)], {})
    assert [html.unescape(one) for one in re.findall(r"<pre [^>]*>(.*?)</pre>", text, re.DOTALL)] == [
        "# mine\nk = 0\ny <mark>= x @ w + b / 3</mark>\nprint(y)  # done\n",
        "z <mark>= a @ b + c / 3</mark>",
    ]
    assert code("# a\nx = y + 1  # b", {1, 2, 4}) == "# a\nx <mark>= y</mark> + <mark>1</mark>  # b"


def test_the_words_of_a_sheet_are_no_evidence_and_those_of_a_chapter_are():
    """Also what only the students' form of the sheet says: a student may paste a task into a cell."""
    for name in SETS:
        texts = [one["source"] for one in student(read(source_of(name)), name)["cells"]]
        assert hand_in("", *texts).own == frozenset()
    (chapter,) = source_of("ex01").parents[1].glob("04-*.ipynb")
    kinds = {"code": set(), "markdown": set()}
    for one in json.loads(chapter.read_bytes())["cells"]:
        kinds[one["cell_type"]] |= hand_in("", "".join(one["source"])).own
    assert kinds["code"] == set()
    assert len(kinds["markdown"]) > 100


def test_a_sheet_of_a_hundred_thousand_characters_is_compared_and_one_more_is_too_much(tmp_path):
    cells = [cell("#" * (50_000 + more)) | {"id": "ex01-1-answer"} for more in (0, 1)]
    members = [("Ada.ipynb", notebook(cells[0], cells[0])), ("Bo.ipynb", notebook(cells[0], cells[1]))]
    write_zip(tmp_path / "class.zip", members)
    compared, left_out = similar.read("ex01", tmp_path / "class.zip", frozenset())
    assert ([one.student for one in compared], left_out) == (["Ada"], {"Bo": "too_much_code"})


def test_who_was_not_compared_is_printed_in_at_most_500_characters(tmp_path, capsys):
    write_zip(tmp_path / "one.zip", [("Ada.ipynb", sheet()), ("Bo.ipynb", b"{")])
    listed(tmp_path / "one.zip", tmp_path / "out")
    assert capsys.readouterr().out.splitlines()[1:] == ["  1 not compared: Bo"]
    names = [f"student {k:02}" for k in range(50)]
    write_zip(tmp_path / "many.zip", [(f"{name}.ipynb", b"{") for name in names])
    listed(tmp_path / "many.zip", tmp_path / "out")
    assert capsys.readouterr().out.splitlines()[1:] == [f"  50 not compared: {', '.join(names[:41])}, student "]
    write_zip(tmp_path / "none.zip", [("Ada.ipynb", sheet())])
    listed(tmp_path / "none.zip", tmp_path / "out")
    assert len(capsys.readouterr().out.splitlines()) == 1
