"""Nothing that a student's code returns, raises or names ends the run of a class, or reaches a page unchecked."""

import unicodedata
from dataclasses import replace

import pytest
from classroom.hand_ins import LAYER_NORM, MEAN_SQUARE, PATIENT, grade_class, mean_square, sheet, totals
from helpers.parts import need

from subnorm_classroom.files import as_json
from subnorm_classroom.grading import grade, judging
from subnorm_classroom.grading.assignments import draw
from subnorm_classroom.grading.cells import Cell
from subnorm_classroom.grading.sandbox import Sandbox
from subnorm_classroom.grading.verdict import SAYS
from subnorm_classroom.reports.feedback import markdown, page

#: What an answer may return.
VALUES = [
    "chr(0xD800)", "['a', chr(0xDFFF)]", "{chr(0xD800): 1}", "(chr(0xD800),)", "np.array([chr(0xD800)])", "chr(0)",
    "'\\x1b[31m'", "chr(0x202E) + 'x'", "chr(0x10FFFF)", "'x' * 10**7", "b'x'", "10**5000", "-(10**5000)",
    "[10**5000]", "{'a': 10**5000}", "2**63", "2**64", "-(2**100)", "2**900", "float('nan')", "float('inf')",
    "1e308 * 10", "1j", "np.float64('nan')", "np.longdouble(1)", "np.array([1e308, -1e308])", "np.array([1j])",
    "np.array([2**63], dtype='uint64')", "np.array(['2020'], dtype='datetime64')",
    "np.array([(1, 2)], dtype='i4,f8')", "np.empty((0, 3))", "np.empty((3, 0, 5))",
    "np.ma.masked_array([1.0], [True])", "np.matrix([[1]])", "[[]] * 1000", "nested(80)", "nested(400)",
    "nested(5000)", "endless", "{1: {2: {3: [chr(0xD800)]}}}", "{None: 1}", "{(1, 2): 3}", "True", "...",
    "NotImplemented", "object()", "int", "lambda: 1", "range(3)", "iter([1])", "{1, 2}", "frozenset()",
    "ValueError('x')", "type('I', (int,), {'__repr__': lambda s: 1 / 0, '__str__': None})(3)",
    "type('F', (float,), {'__repr__': lambda s: 1 / 0})(3)",
    "type('S', (str,), {'__str__': lambda s: 1 / 0, 'encode': None})('s')",
    "type('L', (list,), {'__len__': lambda s: 1 / 0, '__iter__': lambda s: 1 / 0})([1])",
    "type('D', (dict,), {'items': lambda s: 1 / 0})(a=1)",
    "type('A', (np.ndarray,), {'tobytes': lambda s: 1 / 0, 'dtype': 3})((2,))",
    "type('O', (), {'__class__': property(lambda s: 1 / 0)})()",
    "type('P', (), {'__getattr__': lambda s, n: 1 / 0})()",
]  # fmt: skip
#: What it may do instead.
ACTS = [
    "raise ValueError(chr(0xD800))", "raise ValueError('x' * 10**7)", "raise ValueError(10**5000)",
    "raise KeyError(chr(0x202E))", "raise type('X' * 10**6, (Exception,), {})('x')",
    "raise type('שלום', (Exception,), {})('x')", "raise type('a\\x1bb', (Exception,), {})",
    "raise type('E', (Exception,), {'__str__': lambda s: 1 / 0})",
    "raise type('E', (Exception,), {'__str__': lambda s: chr(0xD800)})",
    "raise type('E', (Exception,), {'__str__': lambda s: 3})", "raise type('E', (ValueError,), {'__str__': None})",
    "raise type('E', (BaseException,), {})", "raise GeneratorExit", "raise SystemExit(chr(0xD800))",
    "raise StopIteration", "raise Meta('E', (Exception,), {})('x')", "raise ImportError(name=chr(0xD800))",
    "raise ModuleNotFoundError(name='os\\u202e')", "import no_such_module", "import שלום",
    "raise SyntaxError('x', (chr(0xD800), 10**30, -1, chr(0xD800)))", "raise UnicodeError(chr(0xD800))",
    "raise ExceptionGroup(chr(0xD800), [ValueError(chr(0xD800))])", "e = ValueError('x'); e.__cause__ = e; raise e",
    "raise RecursionError", "return f'{x}'[:0] + chr(0xDBFF)", "x.dtype = 'S8'", "x.shape = (-1,)",
    "x.resize(0, refcheck=False)", "exec('raise ValueError')",
    "exec(compile('\\n' * 10**6 + '1 / 0', chr(0x202E), 'exec'))", "def loop(): return loop()\n    return loop()",
    "yield 1", "__import__('sys').stdout.write(chr(0xD800))", "print(chr(0xD800))",
    "__import__('warnings').warn(chr(0xD800))", "__import__('os').environ['A'] = chr(0xD800)",
    "open(chr(0xD800), 'w')", "x.calls = 10**5000",
]  # fmt: skip
HELPERS = """import numpy as np
def nested(many):
    found = []
    for _ in range(many):
        found = [found]
    return found
endless = []
endless.append(endless)
class Meta(type):
    @property
    def __name__(self):
        return 1 / 0
    @property
    def __mro__(self):
        return 1 / 0
"""


@pytest.fixture(scope="module")
def box():
    need("bwrap")
    with Sandbox(limits=replace(PATIENT, restarts=len(VALUES) + len(ACTS))) as box:
        yield box


def allowed(text):
    """Whether a text can be written, and moves or hides no other."""
    return all(unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp") or c == "\n" for c in text)


def test_every_answer_gets_a_verdict_that_can_be_written_and_shown(box):
    bodies = [f"return {value}" for value in VALUES] + ACTS
    tests = [draw(replace(mean_square, name=f"answer_{k}"), 3) for k in range(len(bodies))]
    cells = [Cell(1, (), HELPERS)]
    cells += [Cell(k + 2, (), f"def answer_{k}(x):\n    {body}") for k, body in enumerate(bodies)]
    results = judging.judge(box, cells, tests)
    record = {"student": "Ada", "results": results, "file": "", "problem": ""}
    for text in (as_json(record), markdown("quick", record), page("quick", record)):
        assert allowed(text.encode().decode())
    found = {body: one["diagnosis"] for body, one in zip(bodies, results, strict=True)}
    assert {body for body, tag in found.items() if tag == "killed"} == set()
    assert {body for body, tag in found.items() if tag == "output"} == {"return 'x' * 10**7"}
    assert set(found.values()) <= {*SAYS, "error"}
    assert [one["points"] for one in results] == [0] * len(results)
    assert found["return 10**5000"] == found["return 2**63"] == "shape"
    assert {found[act] for act in ACTS if act.startswith("raise")} == {"error"}


def test_every_cell_may_say_or_raise_anything(box):
    acts = [act for act in ACTS if "return" not in act and "yield" not in act and "x." not in act]
    sources = [f"{HELPERS}\n{act}\ndef answer(x): pass" for act in acts] + [
        "x = '\ud800'",
        "\ud800",
        "\x00",
        "x\x0c = 1",
        "\ufeffx = 1",
    ]
    test = draw(replace(mean_square, name="answer"), 3)
    for source in (*sources[-5:], "\n".join(HELPERS.split("\n"))):
        cells = [Cell(k, ("setup",), one) for k, one in enumerate([*sources[:-5], source], 1)]
        (one,) = judging.judge(box, cells, [test])
        assert allowed(as_json(one).encode().decode())
        assert one["diagnosis"] in ("cell_error", "missing", "not_done")


CLASS = {
    "Ada": LAYER_NORM,
    "Bo": "def layer_norm(*args):\n    raise ValueError(chr(0xD800))",
    "Cy": "def layer_norm(*args):\n    return chr(0xD800)",
    "Di": "'\ud800'\ndef layer_norm(*args):\n    return '\ud800'",
}


def test_half_a_character_costs_no_other_student_anything(quick_set, tmp_path):
    (tmp_path / "class").mkdir()
    for name, first in CLASS.items():
        (tmp_path / f"class/{name}.ipynb").write_bytes(sheet(first))
    assert grade_class("quick", tmp_path / "class", tmp_path / "grades", seed=1) == 0
    assert totals(tmp_path / "grades") == {"Ada": "3", "Bo": "2", "Cy": "2", "Di": "2"}
    assert {path.stem for path in (tmp_path / "grades/feedback").glob("*.html")} == set(CLASS)


def test_a_fault_of_the_grader_is_the_finding_of_one_student(quick_set, tmp_path, capsys, monkeypatch):
    (tmp_path / "class").mkdir()
    for name in ("Ada", "Bo", "Cy"):
        (tmp_path / f"class/{name}.ipynb").write_bytes(sheet(LAYER_NORM, MEAN_SQUARE, f"name = {name!r}"))
    real = judging.judge

    def judge(box, cells, assignments):
        if any("'Bo'" in cell.source for cell in cells):
            raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "a fault of ours")
        return real(box, cells, assignments)

    monkeypatch.setattr(grade.judging, "judge", judge)
    assert grade_class("quick", tmp_path / "class", tmp_path / "grades", seed=1) == 0
    said = capsys.readouterr()
    assert "grade: the grader failed on Bo (UnicodeEncodeError), and goes on\n" in said.err
    assert "1 without a notebook to grade: Bo (grader_failed)" in said.out
    assert totals(tmp_path / "grades", "points", "problem") == {
        "Ada": ("3", ""), "Bo": ("0", "grader_failed"), "Cy": ("3", ""),
    }  # fmt: skip
    assert "your teacher has to read it" in (tmp_path / "grades/feedback/Bo.md").read_text("utf-8")
