"""Try it at the cells of the chapters: which cells have a button, what the page knows of them, and how they run."""

import json
import re
import sys

import pytest
from helpers import small_book
from helpers.built import up_to_date
from subnorm_book.evidence.chapter_code import ChapterCode
from subnorm_book.in_page import try_it
from subnorm_book.in_page.cells import Cells

from tools import checkout

NOTEBOOKS = sorted((checkout.ROOT / "notebooks").glob("*.ipynb"))


def code(name, source, *outputs, tags=()):
    return {
        "cell_type": "code",
        "id": name,
        "source": [source],
        "outputs": list(outputs),
        "metadata": {"tags": [*tags]},
    }


def prints(text):
    return {"output_type": "stream", "name": "stdout", "text": [text]}


def shows(text):
    return {"output_type": "display_data", "data": {"text/markdown": ["| x |"], "text/plain": [text]}, "metadata": {}}


def fails(name, message):
    return {"output_type": "error", "ename": name, "evalue": message, "traceback": []}


HEADING = {"cell_type": "markdown", "source": ["## Another section"], "metadata": {}}
IMPORTS = "import numpy as np\nimport torch\nfrom subnorm_lab import figures"
SETUP = code("setup", IMPORTS, tags=["hide-input", "try-it-first"])


def tries(*cells):
    return try_it.page_facts([SETUP, *cells], checkout.ROOT)["tries"]


def test_a_button_for_each_cell_with_the_tag_and_the_code_of_those_that_run_before():
    first = code("first", "y = np.ones(3)\nfigures.show(y)", tags=["hide-input", "try-it-first"])
    cells = [SETUP, first, code("torch", "torch.zeros(3)"), code("shown", "x = np.ones(3)", tags=["try-it"])]
    found = try_it.page_facts(cells, checkout.ROOT)
    assert list(found["tries"]) == ["shown"]
    assert [name for name, *_ in found["cells"]] == ["setup", "first", "shown"]


@pytest.mark.parametrize(
    ("outputs", "said", "warns"),
    [
        ([], "", False),
        ([prints("a\n"), shows("x | y\n1 | 2")], "a\nx | y\n1 | 2", False),
        ([fails("ValueError", "no")], "ValueError: no", False),
        ([prints("RuntimeWarning: overflow encountered in square\n[inf]\n")], "[inf]", True),
    ],
)
def test_what_a_cell_said_is_its_text(outputs, said, warns):
    assert tries(code("a", "print(np.ones(1))", *outputs, tags=["try-it"]))["a"] == {
        "then": [],
        "said": said,
        "warns": warns,
        "drawn": False,
        "call": "",
    }


def test_the_hidden_cells_below_run_with_a_cell():
    x = code("x", "x = 3", tags=["try-it"])
    table = code("table", "print(x)", prints("3\n"), tags=["hide-input", "try-it"])
    check = code("check", "assert x == 3", tags=["checked"])
    plot = code("plot", "figures.show(x)", shows("an alternative text"), tags=["hide-input"])
    found = tries(x, check, plot, table, code("more", "z = 4"), {**table, "id": "late"})
    assert found["x"] == {"then": ["table"], "said": "3", "warns": False, "drawn": False, "call": ""}
    assert tries(x, HEADING, table)["x"]["then"] == []


def test_the_page_knows_whether_a_figure_follows():
    picture = {"output_type": "display_data", "data": {"image/svg+xml": "<svg/>"}, "metadata": {}}
    plot = code("plot", "figures.show(x)", picture, tags=["hide-input"])
    found = tries(code("x", "x = 3", tags=["try-it"]), plot, code("late", "x", tags=["try-it"]))
    assert {name: one["drawn"] for name, one in found.items()} == {"x": True, "late": False}


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("import numpy as np", set()),
        ("from subnorm_lab.report import say", {"chapters.tar.gz"}),
        ("from subnorm_lab import museum, stories", {"chapters.tar.gz", "stories.tar.gz"}),
    ],
)
def test_a_page_loads_the_packs_that_its_cells_import(source, wanted):
    found = try_it.page_facts([code("a", source, tags=["try-it"])], checkout.ROOT)
    assert set(found["packs"]) == wanted | {"subnorm.tar.gz"}


def test_every_chapter_has_its_buttons_and_their_file():
    assert up_to_date()
    with_buttons = 0
    for path in NOTEBOOKS:
        html = (checkout.PAGES / "notebooks" / f"{path.stem}.html").read_text("utf-8")
        expected = try_it.page_facts(json.loads(path.read_text("utf-8"))["cells"], checkout.ROOT)
        buttons = re.findall(r'data-try="(.*?)"', html)
        assert buttons == list(expected["tries"]), path.stem
        with_buttons += bool(buttons)
        assert html.count("try-it.js") == html.count("<template") == bool(buttons)
        assert "in-page-worker" not in html
        if buttons:
            stored = checkout.PAGES / try_it.FOLDER / f"{path.stem}.json"
            assert json.loads(stored.read_text("utf-8")) == expected
    assert with_buttons > 15


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_cell_that_prints_nothing_has_a_call_that_does(path, monkeypatch):
    """Without PyTorch and Matplotlib, as in a page."""
    for library in ("torch", "matplotlib"):
        monkeypatch.setitem(sys.modules, library, None)
    found = try_it.page_facts(json.loads(path.read_text("utf-8"))["cells"], checkout.ROOT)
    session, codes = Cells(json.dumps(found["cells"])), {name: text for name, text, *_ in found["cells"]}
    for name, one in found["tries"].items():
        assert bool(one["call"]) != bool(one["said"]), name
        if one["call"]:
            sent = []
            changed = json.dumps({name: f"{codes[name]}\n\n{one['call']}"})
            assert json.loads(session.run(name, changed, "[]", sent.append))["error"] == "", name
            assert "".join(sent).strip(), name


CHAPTER = """\
GAIN = 2


def prepare(x):
    doubled = GAIN * np.array(x)
    torch.set_num_threads(1)
    return doubled


def twice(x):
    if x:
        return 2 * x
    return x"""


@pytest.mark.parametrize(
    ("source", "runs_as"),
    [
        ("y = chapter.prepare(x)", "GAIN = 2\ndoubled = GAIN * np.array(x)\ntorch.set_num_threads(1)\ny = doubled"),
        ("doubled = chapter.prepare(x)", "GAIN = 2\ndoubled = GAIN * np.array(x)\ntorch.set_num_threads(1)"),
        ("chapter.prepare([1])", "GAIN = 2\nx = [1]\ndoubled = GAIN * np.array(x)\ntorch.set_num_threads(1)"),
        ("print(chapter.prepare(x))", "print(chapter.prepare(x))"),
        ("y = chapter.prepare(x=1)", "y = chapter.prepare(x=1)"),
        ("y = chapter.twice(x)", "y = chapter.twice(x)"),
        ("y = 2 # of other.prepare(x)", "y = 2 # of other.prepare(x)"),
    ],
)
def test_a_folded_cell_runs_the_statements_of_the_function_that_it_calls(tmp_path, source, runs_as):
    """So a page can leave out those that need more than NumPy."""
    imports = small_book.module(tmp_path, CHAPTER)
    assert ChapterCode([imports], tmp_path).in_place(source) == runs_as
    assert try_it.page_facts([imports, code("b", source, tags=["try-it"])], tmp_path)["cells"][0][1] == runs_as


# A run


def run(cells, name, changed=None, then=()):
    sent = []
    session = Cells(json.dumps([(name, code, "raises" in name, name != "table") for name, code in cells.items()]))
    result = json.loads(session.run(name, json.dumps(changed or {}), json.dumps(then), sent.append))
    return "".join(sent) + result["error"], result


CELLS = {
    "a": "import absent, math\nfrom math import missing, pi\nprint('loud')",
    "b": "x = [1]",
    "c": "x.append(2)\nabsent.draw(x)\nprint(x)",
    "d": "print(sum(x), int(pi))",
    "broken": "y = absent.f()",
    "f": "print(y)",
}


def test_a_cell_runs_after_the_earlier_ones_without_what_they_lack_and_only_it_is_heard():
    nothing = {"error": "", "line": 0, "verdict": "", "tag": "", "full": False, "changed": []}
    assert run(CELLS, "d") == ("3 3\n", nothing)


def test_every_run_begins_anew():
    session, sent = Cells(json.dumps([(name, code, False, True) for name, code in CELLS.items()])), []
    for _ in range(2):
        session.run("d", "{}", "[]", sent.append)
    assert sent == ["3 3\n", "3 3\n"]
    session.run("b", json.dumps({"b": "left = 1"}), "[]", sent.append)
    result = json.loads(session.run("d", json.dumps({"d": "print(left)"}), "[]", sent.append))
    assert result["error"].endswith("NameError: name 'left' is not defined")


def test_a_run_goes_on_to_what_shows_the_result_and_only_that_is_heard():
    cells = {"a": "x = 1", "b": "y = 2", "quiet": "k = 3\nabsent.f()\nprint('quiet')", "table": "print(x + y + k)"}
    assert run(cells, "b", then=["table"])[0] == "6\n"
    assert run(cells, "b", {"b": "y = 5\nprint('new')"}, ["table"])[0] == "new\n9\n"


def test_an_earlier_cell_runs_as_the_reader_changed_it():
    text, result = run(CELLS, "d", {"b": "x = [10]", "f": "1 / 0"})
    assert (text, result["changed"]) == ("12 3\n", ["b"])
    text, result = run(CELLS, "d", {"b": "x = = 1"})  # a change that is no Python does not count
    assert (text, result["changed"]) == ("3 3\n", [])


def test_what_raised_an_error_in_the_book_does_nothing_for_others():
    cells = {"a": "x = [1]", "raises": "y = 2\nx += 3", "b": "print(x, y)"}
    assert run(cells, "b")[0] == "[1] 2\n"
    assert run(cells, "raises")[0].endswith("TypeError: 'int' object is not iterable")
    assert run(cells, "b", {"raises": "y = 2\nx += [3]"})[0] == "[1, 3] 2\n"


def test_a_change_may_use_any_name_of_the_page():
    assert run(CELLS, "b", {"b": "x = [math.factorial(3)]\nprint(x)"})[0] == "[6]\n"


@pytest.mark.parametrize(
    ("name", "changed", "line", "last"),
    [
        ("d", {"d": "print(1)\nprint(nothing)"}, 2, "NameError: name 'nothing' is not defined"),
        ("d", {"d": "x = = 1"}, 1, "SyntaxError: invalid syntax"),
        ("d", {"b": "x = [1 / 0]"}, 0, "ZeroDivisionError: division by zero"),
        ("f", {}, 1, "NameError: name 'y' is not defined"),  # only from a cell that cannot run here
    ],
)
def test_an_error_has_its_line(name, changed, line, last):
    text, result = run(CELLS, name, changed)
    assert result["line"] == line
    assert text.split("\n")[-1] == last
    assert "session.py" not in text
