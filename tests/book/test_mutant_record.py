"""The page on what the tests miss, on a book of one page: what it shows of a record, and what it refuses."""

import copy
import hashlib
import json

import pytest
from bs4 import BeautifulSoup
from helpers.small_book import build, html, page
from subnorm_book.mutant_record import NOT_TRIED, TRIED, faults

from subnorm._files import code_digest
from tools import mutants

SOURCE = "def f(x):\n    return x | 1\n"
ROW = {"line": 2, "function": "f", "was": "return x | 1", "now": "return x & 1"}
ENTRY = {
    "date": "2026-11-21",
    "commit": "0123456789" * 4,
    "command": "python3 course.py mutants numpy",
    "versions": {"python": "3.11", "cosmic-ray": "8.7.0"},
    "code": hashlib.sha256(SOURCE.strip().encode()).hexdigest()[:16],
    "tests": ["tests/package/test_norms.py"],
    "mutants": 30,
    "tried": 24,
    "late": 1,
    "survivors": [
        {**ROW, "equivalent": "no bit is left."},
        {**ROW, "was": "return a", "now": "return a - 1", "killed": "tests/test_f.py::test_f[1]"},
        {**ROW, "was": "@cached", "now": "", "function": "", "open": "no time yet."},
        {**ROW, "was": "return 1.5 * `x`", "now": "return 2.5 * `x`", "open": "no time yet."},
    ],
}
RECORD = {"schema": 1, "files": {"subnorm/numpy/f.py": ENTRY}}


@pytest.fixture
def shown(tmp_path):
    """The page of a record, and the warnings of its build."""
    for name in ("f", "g"):
        path = tmp_path / "subnorm" / "numpy" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SOURCE)
    (tmp_path / "book").mkdir()

    def shown(record):
        if record is not None:
            (tmp_path / "book" / "mutants.json").write_text(record if isinstance(record, str) else json.dumps(record))
        page(tmp_path, "```{mutants} score\n```\n\n```{mutants} survivors\n```")
        warnings = build(tmp_path)
        return BeautifulSoup(html(tmp_path), "html.parser"), warnings

    return shown


def items(soup):
    return [item.text.strip() for item in soup.select("div.body li")]


def cells(soup):
    return [[cell.text for cell in row.select("td")] for row in soup.select("tbody tr")]


def test_the_score_is_of_those_that_can_be_noticed(shown):
    soup, warnings = shown(RECORD)
    assert warnings == ""
    numbers = ["91.3 %, missed", "24 of 30, a sample", "20", "1", "1", "2"]
    assert cells(soup) == [["subnorm/numpy/f.py", *numbers], ["all", *numbers]]
    assert "python3 course.py mutants numpy, 2026-11-21 at commit 0123456; python 3.11, cosmic-ray 8.7.0." in soup.text


def test_a_good_score_of_all_mutants(shown):
    entry = {
        **ENTRY,
        "mutants": 24,
        "survivors": ENTRY["survivors"][:2],
        "again": {"date": "2026-11-22", "commit": None},
    }
    soup, warnings = shown({"schema": 1, "files": {"subnorm/numpy/f.py": entry}})
    assert warnings == ""
    assert cells(soup)[1] == ["all", "100.0 %", "24", "22", "1", "1", "0"]
    assert ", its survivors again on 2026-11-22 at commit unknown" in soup.text


def test_each_survivor_has_its_line_and_its_verdict(shown):
    soup, _ = shown(RECORD)
    assert items(soup) == [
        "line 2 in f: return x & 1 with & in place of |. Cannot be noticed: no bit is left.",
        "line 2: without @cached. Still missed: no time yet.",
        "line 2 in f: return 2.5 * `x` with 2.5 in place of 1.5. Still missed: no time yet.",
        "line 2 in f: return a - 1, - 1 added. Noticed since: tests/test_f.py: test_f",
    ]
    assert [fold.p.text for fold in soup.select(".admonition.dropdown")] == ["1 noticed since"]


def test_a_file_whose_code_has_changed_or_that_was_not_tried_is_named(shown, tmp_path):
    soup, _ = shown(RECORD)
    path = tmp_path / "subnorm" / "numpy" / "f.py"
    path.write_text('"""About f."""\n\n# more\n' + SOURCE.replace("    return", '    """More."""  # x\n    return'))
    assert cells(shown(RECORD)[0])[0] == cells(soup)[0]
    path.write_text(SOURCE.replace("1", "2"))
    soup, warnings = shown(RECORD)
    assert cells(soup)[0][0] == "subnorm/numpy/f.py (changed since)"
    assert "Not tried yet: subnorm/numpy/g.py." in soup.text
    assert warnings == ""


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ('"""A\nb."""\n\nx = 1  # one\n\n\nclass A:\n    "Doc"  # c\n    # d\n    y = "#"\n', True),
        ('x = 1\nclass A:\n    y = "# "\n', False),
        ('x = 1\nclass A:\n    "Doc" "and"\n    y = "#"\n', False),
        ('x = 1\nclass A:\n  y = "#"\n', False),
        ('x = 1\nclass B:\n    y = "#"\n', False),
    ],
)
def test_the_hash_of_code_is_of_neither_comments_nor_docstrings(text, same, tmp_path):
    path = tmp_path / "a.py"
    path.write_text('x = 1\nclass A:\n    y = "#"\n')
    before = code_digest(path)
    path.write_text(text)
    assert (code_digest(path) == before) == same


def test_without_a_record_all_files_are_named(shown):
    soup, warnings = shown(None)
    assert "Not tried yet: subnorm/numpy/f.py, subnorm/numpy/g.py." in soup.text
    assert warnings == ""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda entry: entry["survivors"][0].pop("equivalent"), "line 2: a survivor needs one verdict"),
        (lambda entry: entry["survivors"][0].update(equivalent=" "), "line 2: a survivor needs one verdict"),
        (lambda entry: entry["survivors"][0].update(open="why"), "line 2: a survivor needs one verdict"),
        (lambda entry: entry["survivors"][0].pop("was"), "a survivor has the keys"),
        (lambda entry: entry["survivors"][0].update(more=1), "a survivor has the keys"),
        (lambda entry: entry.update(date="yesterday"), "'yesterday' is not a day"),
        (lambda entry: entry.update(again={"date": "now", "commit": None}), "'now' is not a day"),
        (lambda entry: entry.update(commit="abc"), "'abc' is not a commit"),
        (lambda entry: entry.update(command="make"), "'make' does not repeat it"),
        (lambda entry: entry.update(tried=31), "more tried than there are"),
        (lambda entry: entry.pop("tests"), "must have the keys"),
    ],
)
def test_a_record_that_does_not_hold_together_is_a_warning(change, said):
    record = copy.deepcopy(RECORD)
    assert faults(record) == []
    change(record["files"]["subnorm/numpy/f.py"])
    assert said in " ".join(faults(record))


def test_a_warning_comes_back_in_every_build(shown):
    record = copy.deepcopy(RECORD)
    del record["files"]["subnorm/numpy/f.py"]["survivors"][2]["open"]
    for _ in range(2):
        soup, warnings = shown(record)
        assert "mutants.json: subnorm/numpy/f.py: line 2: a survivor needs one verdict" in warnings
        assert not items(soup)
    assert "Expecting" in shown("{")[1]


def test_the_record_of_the_course_holds_together():
    record = mutants.recorded()
    assert faults(record) == []
    rows = [row for entry in record["files"].values() for row in entry["survivors"]]
    tests = {row["killed"].partition("[")[0] for row in rows if "::" in row.get("killed", "")}
    for file, name in (test.split("::")[:2] for test in tests):
        assert f"def {name}(" in (mutants.course.ROOT / file).read_text("utf-8"), "a verdict names a test that is gone"


def test_the_page_expects_the_files_that_the_command_tries():
    found = {path for pattern in TRIED for path in mutants.course.ROOT.glob(pattern) if path.name not in NOT_TRIED}
    tried = {file for part in mutants.PARTS.values() for file in part}
    assert {path.relative_to(mutants.course.ROOT).as_posix() for path in found} >= tried
