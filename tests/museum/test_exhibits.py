"""Every exhibit: its test tells the bug from the fix, its check names the bug, and the page shows both."""

import ast
import re

import numpy as np
import pytest
from subnorm_book import notebook_text

from subnorm_lab import museum
from subnorm_lab.chapters import the_bug_museum
from subnorm_lab.checks.collect import outcomes_of
from subnorm_lab.checks.edited import text_of
from tools.refresh import NOTEBOOKS

PAGE = NOTEBOOKS / "09a-the-bug-museum.ipynb"
SEEDS = range(10)

each_exhibit = pytest.mark.parametrize("exhibit", museum.EXHIBITS, ids=lambda exhibit: exhibit.name)


def passes(exhibit, function):
    with np.errstate(all="ignore"):
        return exhibit.test(function)


def verdict_on(exhibit, answer, seed):
    cases = exhibit.check.cases(np.random.default_rng(seed))
    return exhibit.check.judge(cases, outcomes_of(answer, cases))


def test_there_are_enough_and_each_has_its_own_name():
    assert len({exhibit.name for exhibit in museum.EXHIBITS}) == len(museum.EXHIBITS) >= 16


@each_exhibit
def test_the_test_fails_on_the_bug_and_passes_on_the_fix(exhibit):
    assert passes(exhibit, exhibit.fixed)
    assert not passes(exhibit, exhibit.bug)


@each_exhibit
@pytest.mark.parametrize("seed", SEEDS)
def test_the_check_knows_the_fix_the_bug_and_the_other_mistakes(exhibit, seed):
    assert verdict_on(exhibit, exhibit.fixed, seed)
    assert verdict_on(exhibit, exhibit.bug, seed).tag == "still_there"
    for mistake in exhibit.check.mistakes[1:]:
        assert verdict_on(exhibit, mistake.answer, seed).tag == mistake.tag


@each_exhibit
def test_the_bug_is_one_line(exhibit):
    wrong, right = (text.splitlines() for text in (exhibit.bug.text, text_of(exhibit.fixed)))
    assert len(wrong) == len(right)
    assert sum(a != b for a, b in zip(wrong, right, strict=True)) == 1
    assert len(wrong) <= 10
    assert exhibit.report.startswith("https://github.com/")


def test_a_fix_gets_its_verdict_in_class(capsys):
    assert museum.token_norm(museum.token_norm.fixed)
    assert not museum.token_norm(museum.token_norm.bug)
    assert "the mean and the variance run over the tokens" in capsys.readouterr().out


# The page


def cells(kind):
    return ["".join(c["source"]) for c in notebook_text.read_file(PAGE)["cells"] if c["cell_type"] == kind]


def function_on_page(name):
    """The function of that name on the page."""
    found = [
        node
        for source in cells("code")
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and node.name == name
    ]
    assert len(found) == 1, name
    return ast.dump(found[0])


def section(exhibit):
    texts = [text for text in cells("markdown") if f":::{{predict}} {exhibit.name.replace('_', '-')}\n" in text]
    assert len(texts) == 1
    return texts[0]


@each_exhibit
def test_the_page_shows_the_bug_and_its_test(exhibit):
    assert function_on_page(exhibit.name) == ast.dump(ast.parse(exhibit.bug.text).body[0])
    test = re.sub(r"\((\w+): Function\) -> bool", r"(\1)", text_of(exhibit.test))
    assert function_on_page(exhibit.test.__name__) == ast.dump(ast.parse(test).body[0])
    assert exhibit.report in "\n".join(cells("markdown"))


# Where its function is one line, or its line opens the page, a question asks what comes of it: {name: (line, option)}.
ASKED = {
    "unit_rms": ("return x / rstd", "Louder still."),
    "deep_norm": ("return norm(x + alpha * sublayer(x))", "`x`"),
    "decayed_parameters": ('"LayerNorm.weight" not in name', "`ln_f.weight`"),
}


@each_exhibit
def test_the_right_option_is_the_line_with_the_bug(exhibit):
    wrong, right = (text.splitlines() for text in (exhibit.bug.text, text_of(exhibit.fixed)))
    bug = next(a for a, b in zip(wrong, right, strict=True) if a != b)
    marked = re.findall(r"^- \[x\] `(.*)`$", section(exhibit), re.MULTILINE)
    others = re.findall(r"^- \[ \] `(.*)`$", section(exhibit), re.MULTILINE)
    if exhibit.name in ASKED:
        line, option = ASKED[exhibit.name]
        assert exhibit.bug.text.count(line) == 1
        assert f"- [x] {option}\n" in section(exhibit)
        return
    assert marked == [bug.partition("  #")[0].strip()]
    lines = [line.partition("  #")[0].strip() for line in right]
    assert len(others) >= 1
    assert all(other in lines for other in others)


def test_the_figure_that_opens_the_page_names_exhibits_as_their_headings_do():
    text = PAGE.read_text("utf-8")
    numbers = [museum.EXHIBITS.index(getattr(museum, name)) + 1 for name in the_bug_museum.SHOWN]
    headings = [
        f"### {number}. {title}" for number, (title, _) in zip(numbers, the_bug_museum.SHOWN.values(), strict=True)
    ]
    assert [heading for heading in headings if f'"{heading}\\n"' not in text] == []
