"""Every number that the text calls chosen, {given}`120`, is one that the code or a row below chooses.

Most are constants of the code in their own section; `helpers.chosen_numbers` looks there. A row is for the others.
"""

import json

import pytest
from helpers import small_book
from helpers.chosen_numbers import in_notebook, in_text, named, rounded_to
from subnorm_book import notebook_text

from tools import checkout
from tools.refresh import notebooks

PAGES = sorted(path for path in checkout.ROOT.glob("book/*.md") if path.stem != "changelog")  # it speaks of the past

#: Numbers of others' formats, rounded to the digits that the text shows
FORMATS = {
    "65504": "np.finfo('float16').max",
    "256": "2**8",  # the smallest power of two whose square is above 65504
    "6\u00a0×\u00a010⁻⁸": "float(np.finfo('float16').smallest_subnormal)",
    "3\u00a0×\u00a010⁻⁸": "float(np.finfo('float16').smallest_subnormal) / 2",
    "6\u00a0×\u00a010⁻⁵": "float(np.finfo('float16').smallest_normal)",
    "10⁻¹⁶": "np.finfo('float64').eps / 2",
    "10³⁰⁸": "10.0 ** int(np.log10(np.finfo('float64').max))",
}

#: Settings of an experiment that another section or a page speaks of
SETTINGS = {
    ("03", "18"): "6 * 3",  # rows and columns of the paper's table
    ("04a", "12"): "len(stories.texts())",
    ("04a", "130"): "parity.LENGTHS",
    ("05b", "800"): "longer_runs.STEPS",
    ("05b", "3200"): "[int(part.split('-')[4]) for part in longer_runs.PARTS if part.count('-') == 4]",
    ("05b", "15"): "warmup.MAPS['copy'].task.symbols",
    ("05b", "20"): "warmup.settled",
    ("05c", "27"): "3**3",
    ("08", "33"): "2 * 4 * 4096 / 1000",
    ("08", "260,032"): "sum(math.prod(shape) for shape in stories.files.SHAPES.values())",
    ("08a", "4096"): "record._CUDA_SHAPES",
    ("08a", "1024"): "record._CUDA_SHAPES",
    ("08a", "16384"): "record._CUDA_SHAPES",
    ("08a", "1.05"): "record.ROOF",
    ("08", "eleven"): "2 * 5 + 1",  # two norms in each of five blocks, and the final one
    ("09a", "twenty-one"): "len(museum.EXHIBITS)",
    ("09b", "thirteen"): "len({c.function for c in conventions.CONVENTIONS.values()})",
    ("09b", "seventeen"): "len(conventions.CONVENTIONS)",
    ("09c", "fifteen"): "2 * 7 + 1",
    ("10a", "1.0078"): "1 + 2**-7",  # bfloat16
    ("ex02", "thirteen"): "len(checks.invariances.cases(np.random.default_rng(0)))",
    ("ex06", "eleven"): "2 * 5 + 1",
    ("ex06", "forty"): "5 * 8",
    ("grading", "fifteen"): "sum(bool(ex.variants) for sheet in checks.SETS.values() for ex in sheet)",
    ("grading", "20"): "sandbox.Limits.cell",
    ("grading", "10"): "sandbox.Limits.question",
    ("grading", "90"): "sandbox.Limits.total",
    ("myths", "130"): "parity.LENGTHS",
    ("myths", "800"): "longer_runs.STEPS",
    ("09c", "127"): "2**7 - 1",
    ("ex05", "36"): "(9 * 40 + 400) / 10 - 40",
    ("ex05", "10000"): "100**2",
    ("ex05", "80000"): "8 * 100**2",
}

#: Free choices: an example in a question, a confidence, a year, a bound that the claim's own cell does not state
EXAMPLES = {
    "01": ("95", "874", "312"),
    "01a": ("twenty",),
    "03b": ("95",),
    "05c": ("twenty",),
    "06d": ("twenty",),
    "intro": ("twenty",),
    "story": ("twenty",),
    "04a": ("0.0025",),
    "06b": ("1600", "600"),
    "08": ("2024", "2025", "2026", "2.6"),
    "08a": ("1.02",),
    "09a": ("2017", "2026"),
    "cheat": ("300",),
    "ex02": ("0.002",),
    "ex03": ("0.5",),
    "ex05": ("40", "400", "5", "30", "100"),
}


def fault(stem, number, tied):
    """What is wrong with a chosen number; empty if nothing is."""
    name = stem.partition("-")[0]
    if tied or number in EXAMPLES.get(name, ()):
        return ""
    rule = SETTINGS.get((name, number)) or FORMATS.get(number)
    if not rule:
        return "no constant of this section's code has this value, and no row of this test says what it is"
    return "" if any(rounded_to(number, found) for found in named(rule)) else f"{rule} is not {number}"


def faults(stem, found):
    return [
        f"{stem}: {number}: {why}: …{around}…" for number, around, tied in found if (why := fault(stem, number, tied))
    ]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_page(path):
    assert faults(path.stem, in_text(path.read_text("utf-8"))) == []


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_notebook(path):
    assert faults(path.stem, in_notebook(notebook_text.read_file(path)["cells"])) == []


def test_every_row_is_needed():
    needed = set()
    for path in [*PAGES, *notebooks()]:
        text = path.read_text("utf-8")
        found = in_text(text) if path.suffix == ".md" else in_notebook(notebook_text.read_file(path)["cells"])
        needed |= {(path.stem.partition("-")[0], number) for number, _, tied in found if not tied}
    examples = {(name, number) for name, numbers in EXAMPLES.items() for number in numbers}
    assert {*SETTINGS, *examples} - needed == set()
    assert set(FORMATS) - {number for _, number in needed} == set()


def with_number(cells, old, new):
    text = json.dumps(cells).replace(f"{{given}}`{old}`", f"{{given}}`{new}`")
    return json.loads(text)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("07", "after 120 steps", "after 150 steps"),
        ("08", "{given}`120`", "{given}`150`"),
        ("09a", "Twenty-one bugs", "Thirty-one bugs"),
        ("06c", "{given}`0.03`", "{given}`0.003`"),
        ("04a", "{given}`130`", "{given}`140`"),
        ("05b", "{given}`800`", "{given}`700`"),
    ],
)
def test_another_number_is_noticed(name, old, new):
    path = next(path for path in notebooks() if path.stem.startswith(f"{name}-"))
    text = json.dumps(notebook_text.read_file(path)["cells"])
    assert old in text
    cells = json.loads(text.replace(old, new))
    for cell, before in zip(cells, json.loads(text), strict=True):
        if cell["cell_type"] == "code":
            cell["source"] = before["source"]
    assert faults(path.stem, in_notebook(cells))


def test_a_number_in_a_function_belongs_to_the_sections_that_call_it(tmp_path, monkeypatch):
    monkeypatch.setattr(checkout, "ROOT", tmp_path)
    text = "STEPS = 120\n\n\ndef draw():\n    figures.show(train(STEPS))\n\n\ndef prove():\n    assert train(150)"
    cell = small_book.module(tmp_path, text)
    said = small_book.markdown("## A\n\nAfter {given}`120`, not {given}`150`.")
    cells = [cell, said, small_book.code(source="chapter.draw()"), small_book.code(source="x = 1")]
    assert [(number, tied) for number, _, tied in in_notebook(cells)] == [("120", True), ("150", False)]
    assert [tied for *_, tied in in_notebook([cell, said, small_book.code(source="x = 1")])] == [False, False]
