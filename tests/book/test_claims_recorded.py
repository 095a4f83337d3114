"""A claim whose cell asserts something about stored measurements names the record; which cells these are is read from
their code."""

import re
from pathlib import Path

import pytest
from helpers.small_book import module
from subnorm_book import notebook_text
from subnorm_book.evidence.chapter_code import ChapterCode
from subnorm_book.evidence.records import Stored, newest

from tools.checkout import chapters

ROOT = Path(__file__).parents[2]
TAG = "claim:"
ROLE = re.compile(r"\{claim\}`([^`]+)`")


def cells(path):
    return notebook_text.read_file(path)["cells"]


def reading(cells, root=ROOT):
    """The claims of the cells that assert something about stored values."""
    stored = Stored(ChapterCode(cells, root))
    for cell in cells:
        if cell["cell_type"] == "code" and any(stored.cell("".join(cell["source"]))):
            yield from (t.removeprefix(TAG) for t in cell["metadata"].get("tags", []) if t.startswith(TAG))


def texts(cells):
    """The text of a page: its prose, and the Markdown output of its cells."""
    for cell in cells:
        if cell["cell_type"] == "markdown":
            yield "".join(cell["source"])
        for output in cell.get("outputs", []):
            yield "".join(output.get("data", {}).get("text/markdown", ""))


def stated(texts):
    """Every claim, and the records that it names."""
    found = [role.split() for text in texts for role in ROLE.findall(text)]
    return {name: [r.removeprefix("record:") for r in rests if r.startswith("record:")] for name, *rests in found}


def unmarked(cells, root=ROOT):
    named = stated(texts(cells))
    return sorted({name for name in reading(cells, root) if not named.get(name)})


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_a_claim_that_rests_on_a_record_names_it(path):
    assert unmarked(cells(path)) == []


def command(record):
    """The command that repeats a record; "" if there is no such record, or it names none."""
    return (newest(ROOT, record) or (None, ""))[1]


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_a_record_that_is_named_says_how_to_measure_it_again(path):
    records = [record for named in stated(texts(cells(path))).values() for record in named]
    assert [record for record in records if not command(record)] == []


def test_every_record_of_the_package_says_how_to_measure_it_again():
    records = [path.relative_to(ROOT).as_posix() for path in ROOT.glob("subnorm*/*/records/*.json")]
    assert len(records) > 3
    assert [record for record in records if not command(record)] == []


def test_the_chapters_are_read():
    """A change in how records are read must not silently disable this test."""
    assert sum(bool([*reading(cells(path))]) for path in chapters()) >= 5


def notebook(*sources, role="03-a"):
    tagged = [{"cell_type": "code", "source": [s], "metadata": {"tags": ["claim:03-a"]}} for s in sources]
    return [{"cell_type": "markdown", "source": [f"So it is. {{claim}}`{role}`"]}, *tagged]


STORED = {
    "at once": ["assert warmup.recorded()['loss'] < 1"],
    "by a name": ["record = warmup.recorded()", "loss = record['loss']", "assert loss < 1"],
    "by two names": ["pre, post = warmup.recorded()['losses']", "assert 0 < post"],
    "by a loop": ["for r in timing.read_records():\n    slow = r['slow']", "assert slow > 1"],
    "by a list": ["found = []\nfound.append(json.loads(text))", "assert found[0] < 1"],
    "by a place": ["times = {}\ntimes['a'] = json.load(file)", "assert times['a'] < 1"],
    "by a function": ["record = warmup.recorded()", "def loss(): return record['loss']", "assert loss() < 1"],
    "by another assertion": ["record = warmup.recorded()", "np.testing.assert_allclose(record['loss'], 1)"],
    "by a comprehension": ["record = warmup.recorded()", "assert all(loss < 1 for loss in record['losses'])"],
    "by a sum": ["total = 0\ntotal += warmup.recorded()['loss']", "assert total < 1"],
    "after a magic": ["%matplotlib inline\nrecord = warmup.recorded()", "assert record['loss'] < 1"],
}


@pytest.mark.parametrize("how", STORED)
def test_an_unmarked_claim_is_found(how):
    assert unmarked(notebook(*STORED[how])) == ["03-a"]
    assert unmarked(notebook(*STORED[how], role="03-a record:subnorm_lab/experiments/records/warmup.json")) == []


IN_FUNCTIONS = {  # the module, and the cells
    "in one": ("def prove():\n    assert warmup.recorded()['loss'] < 1", ["chapter.prove()"]),
    "by an argument": ("def prove(loss):\n    assert loss < 1", ["r = warmup.recorded()", "chapter.prove(r['loss'])"]),
    "by a keyword": ("def prove(loss):\n    assert loss < 1", ["r = warmup.recorded()", "chapter.prove(loss=r)"]),
    "by what one returns": ("def read():\n    r = warmup.recorded()\n    return r", ["x = chapter.read()", "assert x"]),
    "by its second result": ("def f():\n    return 1, warmup.recorded()", ["a, b = chapter.f()", "assert b < 1"]),
    "by what one adds": ("def f(x):\n    x.append(warmup.recorded())", ["y = []", "chapter.f(y)", "assert y"]),
    "by another one": (
        "def read():\n    return warmup.recorded()\n\n\ndef prove():\n    assert read()['loss'] < 1",
        ["chapter.prove()"],
    ),
    "in another one": (
        "def check(loss):\n    assert loss < 1\n\n\ndef prove():\n    check(warmup.recorded())",
        ["chapter.prove()"],
    ),
    "by a function of the notebook": (
        "def read():\n    return warmup.recorded()",
        ["def loss():\n    return chapter.read()['loss']", "assert loss() < 1"],
    ),
}


@pytest.mark.parametrize("how", IN_FUNCTIONS)
def test_an_unmarked_claim_is_found_in_functions(tmp_path, how):
    text, sources = IN_FUNCTIONS[how]
    assert unmarked([module(tmp_path, text), *notebook(*sources)], tmp_path) == ["03-a"]


NEW_IN_FUNCTIONS = {
    "measured": ("def prove(loss):\n    assert loss < 1", ["loss = train()", "chapter.prove(loss)"]),
    "the first result": ("def f():\n    return 1, warmup.recorded()", ["a, b = chapter.f()", "assert a"]),
    "its own name": ("def f():\n    x = warmup.recorded()\n    print(x)", ["x = 1", "chapter.f()", "assert x"]),
    "a name of the notebook": ("def f():\n    x = 1\n    assert x", ["x = warmup.recorded()", "chapter.f()"]),
}


@pytest.mark.parametrize("how", NEW_IN_FUNCTIONS)
def test_a_function_that_measures_anew_needs_no_record(tmp_path, how):
    text, sources = NEW_IN_FUNCTIONS[how]
    assert unmarked([module(tmp_path, text), *notebook(*sources)], tmp_path) == []


NEW = {
    "measured": ["loss = train()[1]", "assert loss < 1"],
    "the name is taken again": ["loss = warmup.recorded()['loss']", "loss = train()[1]", "assert loss < 1"],
    "the name is a function's own": ["loss = warmup.recorded()['loss']", "def f(loss): return loss", "assert f(1)"],
    "the name is a comprehension's own": ["r = warmup.recorded()", "assert all(r > 0 for r in (1, 2))"],
    "with a trained model": ["model = stories.load()", "assert stories.loss(model, text) < 2"],
    "the record is only shown": ["print(warmup.recorded())", "assert 1 + 1 == 2"],
}


@pytest.mark.parametrize("how", NEW)
def test_a_claim_that_measures_anew_needs_no_record(how):
    assert unmarked(notebook(*NEW[how])) == []
