"""Try it at the cells of the chapters: which cells have a button, what the page knows of them, and how they run."""

import json
import re

import pytest
from helpers.built import up_to_date
from subnorm_book.in_page import packs, try_it
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
SETUP = code("setup", "import numpy as np\nimport torch\nfrom subnorm_lab import figures", tags=["hide-input"])


def tries(*cells):
    return try_it.page([SETUP, *cells], checkout.ROOT)["tries"]


def test_a_button_for_a_cell_that_is_shown_and_for_a_hidden_one_that_prints():
    cells = [
        code("shown", "x = np.ones(3)"),
        code("drawn", "figures.show(x)", tags=["hide-input"]),
        code("set-up", "y = x + 1", tags=["hide-input"]),
        code("printed", "print(y)", prints("[2. 2. 2.]\n"), tags=["hide-input"]),
        code("checked", "assert x.sum() == 3", tags=["checked"]),
        code("torch", "torch.zeros(3)"),
    ]
    assert list(tries(*cells)) == ["shown", "set-up", "printed"]


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
    assert tries(code("a", "print(np.ones(1))", *outputs))["a"] == {
        "then": [],
        "said": said,
        "warns": warns,
        "drawn": False,
    }


def test_the_hidden_cells_that_show_a_result_run_with_it():
    table = code("table", "print(x)", prints("3\n"), tags=["hide-input"])
    other = code("other", "print(4)", prints("4\n"), tags=["hide-input"])
    check = code("check", "assert x == 3", tags=["checked"])
    plot = code("plot", "figures.show(x)", shows("an alternative text"), tags=["hide-input"])
    found = tries(code("x", "x = 3"), check, plot, other, table, code("more", "z = 4"), {**table, "id": "late"})
    assert found["x"] == {"then": ["table"], "said": "3", "warns": False, "drawn": False}
    assert tries(code("x", "x = 3"), HEADING, table)["x"]["then"] == []


def test_a_cell_that_a_figure_shows_is_told_from_others():
    picture = {"output_type": "display_data", "data": {"image/svg+xml": "<svg/>"}, "metadata": {}}
    plot = code("plot", "figures.show(x)", picture, tags=["hide-input"])
    found = tries(code("early", "x = 1"), code("x", "x = 3"), code("y", "y = 3"), plot, code("late", "x"))
    assert {name: one["drawn"] for name, one in found.items()} == {"early": False, "x": True, "y": False, "late": False}


def test_a_page_loads_the_packs_that_its_cells_import(caplog):
    def wanted(source):
        return try_it.page([code("a", source)], checkout.ROOT)["packs"]

    assert wanted("import numpy as np") == ["subnorm.tar.gz"]
    assert wanted("from subnorm_lab.report import say") == ["chapters.tar.gz", "subnorm.tar.gz"]
    assert wanted("from subnorm_lab import stories") == ["stories.tar.gz", "subnorm.tar.gz"]
    assert "subnorm_lab/experiments/finite_differences.py" not in {
        name for p in packs.PACKS for name in packs.pack_files(checkout.ROOT, p)
    }
    wanted("from subnorm_lab.experiments import finite_differences")
    assert "subnorm_lab/experiments/finite_differences.py runs in the pages: add it to PACKS" in caplog.text


def test_every_chapter_has_its_buttons_and_their_file():
    assert up_to_date()
    with_buttons = 0
    for path in NOTEBOOKS:
        html = (checkout.PAGES / "notebooks" / f"{path.stem}.html").read_text("utf-8")
        expected = try_it.page(json.loads(path.read_text("utf-8"))["cells"], checkout.ROOT)
        buttons = re.findall(r'data-try="(.*?)"', html)
        assert buttons == list(expected["tries"]), path.stem
        with_buttons += bool(buttons)
        assert html.count("try-it.js") == html.count("<template") == bool(buttons)
        assert "in-page-worker" not in html
        if buttons:
            stored = checkout.PAGES / try_it.FOLDER / f"{path.stem}.json"
            assert json.loads(stored.read_text("utf-8")) == expected
    assert with_buttons > 15


# A run


def run(cells, name, changed=None, then=()):
    sent = []
    session = Cells(json.dumps([(name, code, "raises" in name) for name, code in cells.items()]))
    result = json.loads(session.run(name, json.dumps(changed or {}), json.dumps(then), sent.append))
    return "".join(sent) + result["error"], result


CELLS = {
    "a": "import absent\nimport math\nprint('loud')",
    "b": "x = [1]",
    "c": "x.append(2)\nprint(x)",
    "d": "print(sum(x))",
    "e": "y = 2 * sum(x)",
    "table": "z = 1\nprint(y + z)",
    "broken": "x = absent.f()",
    "f": "print(x)",
}


def test_a_cell_runs_after_the_statements_it_needs_and_only_it_is_heard():
    assert run(CELLS, "d") == ("3\n", {"error": "", "line": 0, "verdict": "", "tag": "", "full": False, "changed": []})


def test_every_run_begins_anew():
    session, sent = Cells(json.dumps([(name, code, False) for name, code in CELLS.items()])), []
    for _ in range(2):
        session.run("c", "{}", "[]", sent.append)
    assert sent == ["[1, 2]\n", "[1, 2]\n"]
    session.run("b", json.dumps({"b": "left = 1"}), "[]", sent.append)
    result = json.loads(session.run("d", json.dumps({"d": "print(left)"}), "[]", sent.append))
    assert result["error"].endswith("NameError: name 'left' is not defined")


def test_what_shows_the_result_runs_with_what_it_needs_itself():
    cells = {"a": "x = 1", "b": "y = 2", "quiet": "k = 3\nprint('quiet')", "table": "print(x + y + k)"}
    assert run(cells, "b", then=["table"])[0] == "6\n"
    assert run(cells, "b", {"b": "y = 5\nprint('new')"}, ["table"])[0] == "new\n9\n"


def test_an_earlier_cell_runs_as_the_reader_changed_it():
    text, result = run(CELLS, "d", {"b": "x = [10]", "table": "1 / 0"})
    assert (text, result["changed"]) == ("12\n", ["b"])
    text, result = run(CELLS, "d", {"b": "x = = 1"})  # a change that is no Python does not count
    assert (text, result["changed"]) == ("3\n", [])


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
        ("f", {}, 1, "NameError: name 'x' is not defined"),  # only from a cell that cannot run here
    ],
)
def test_an_error_has_its_line(name, changed, line, last):
    text, result = run(CELLS, name, changed)
    assert result["line"] == line
    assert text.split("\n")[-1] == last
    assert "page_" not in text
