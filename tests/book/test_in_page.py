"""What runs Python in the pages of the exercises: the stored parts, the packs of the build, and the session."""

import gzip
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
from html import unescape

import numpy as np
import pytest
from helpers.built import up_to_date
from subnorm_book.in_page import packs
from subnorm_book.in_page.session import MOST, Session

from subnorm_lab import checks
from subnorm_lab.checks.collect import NEEDS
from tools import checkout

STORED = checkout.ROOT / packs.STATIC
LIMIT = 9_000_000  # bytes that a page may load in all for its first result
SHEETS = sorted((checkout.ROOT / "notebooks/exercises").glob("*.ipynb"))

# In a Python that can import NumPy and nothing else that is installed.
ALONE = """
import importlib, sys
from pathlib import Path
folder, *absent = sys.argv[1:]
sys.path.insert(0, folder)
sys.modules.update(dict.fromkeys(absent))
for path in Path(folder).rglob("*.py"):
    importlib.import_module(".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__"))
from subnorm_lab import checks, report
report.table(["a table", "printed"], [[1, 2]])
assert checks.__file__.startswith(folder), checks.__file__
for sheet in checks.SETS.values():
    for exercise in sheet:
        if exercise.way == "function":
            assert exercise(exercise.reference)
checks.story(**{exercise.name: exercise.reference for exercise in checks.SETS["ex06"]})
"""


# The stored parts


def test_the_stored_parts_are_those_of_their_list():
    listed = json.loads((STORED / "parts.json").read_text("utf-8"))
    assert listed["files"].keys() == listed["origins"].keys()
    for name, about in listed["files"].items():
        content = (STORED / name).read_bytes()
        assert about == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}, name


def test_numpys_modules_have_different_sizes():
    """The page's worker compiles them before Python starts, and finds each by its size."""
    with tarfile.open(STORED / "numpy.tar.gz") as archive:
        sizes = [entry.size for entry in archive if entry.name.endswith(".so")]
    assert len(sizes) == len(set(sizes)) > 10, sizes


def test_every_stored_file_has_a_licence_that_lies_beside_it():
    about = checkout.ROOT / "tools/in_page/README.md"
    text = about.read_text("utf-8")
    rows = [row for row in text.split("\n") if row.startswith("| `")]
    named = [name for row in rows for name in re.findall(r"`([\w.]+)`", row.split("|")[1])]
    assert sorted(named) == sorted(json.loads((STORED / "parts.json").read_text("utf-8"))["files"])
    for row in rows:
        (licence,) = re.findall(r"\[text\]\((.*?)\)", row)
        assert (about.parent / licence).resolve().parent == STORED
        assert (about.parent / licence).stat().st_size > 1000


# The packs


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packs")
    for pack in packs.PACKS:
        with tarfile.open(fileobj=io.BytesIO(packs.make_pack(checkout.ROOT, pack)), mode="r:gz") as archive:
            archive.extractall(folder, filter="data")
    return folder


def test_the_packs_need_numpy_alone(unpacked):
    words = [sys.executable, "-c", ALONE, str(unpacked), "torch", "matplotlib", "IPython", "PIL"]
    done = subprocess.run(words, cwd=unpacked, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("a table | printed\n1 | 2\n")
    assert done.stdout.endswith("✓ story: word for word what the author of the model published.\n")


def test_a_pack_is_the_source_tree_and_the_same_in_every_build(unpacked):
    files = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    assert {"subnorm_book/in_page/session.py", "subnorm_lab/checks/ex01/residual.py", "subnorm/numpy/norms.py"} <= files
    assert (unpacked / "subnorm/numpy/norms.py").read_bytes() == (checkout.ROOT / "subnorm/numpy/norms.py").read_bytes()
    for pack in packs.PACKS:
        assert packs.make_pack(checkout.ROOT, pack) == packs.make_pack(checkout.ROOT, pack)


# The pages


def settings(path):
    html = (checkout.PAGES / "notebooks/exercises" / f"{path.stem}.html").read_text("utf-8")
    return html, json.loads(unescape(re.search(r'data-in-page="([^"]*)"', html)[1]))


@pytest.mark.parametrize("path", SHEETS, ids=lambda path: path.stem)
def test_a_page_loads_what_the_build_has_and_not_too_much(path):
    assert up_to_date()
    html, about = settings(path)
    folder = checkout.PAGES / "_static/python"
    for name, part in about["parts"].items():
        content = (folder / name).read_bytes()
        if name.endswith(".js"):
            assert part == {"bytes": len(gzip.compress(content))}
        else:
            assert part == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    scripts = sum(len(gzip.compress((folder / name).read_bytes())) for name in ("editor.js", "pyodide.js"))
    assert sum(part["bytes"] for part in about["parts"].values()) + scripts <= LIMIT
    assert html.count("in-page.js") == 1
    assert not re.search(r"<(script|link)[^>]*(python/|worker)", html)  # comes at the first click


@pytest.mark.parametrize("path", SHEETS, ids=lambda path: path.stem)
def test_each_exercise_begins_with_the_cell_of_the_students_notebook(path):
    assert up_to_date()
    html, about = settings(path)
    student = json.loads((path.parent / "student" / path.name).read_text("utf-8"))["cells"]
    texts = {cell["id"]: "".join(cell["source"]) for cell in student}
    exercises = checks.SETS[path.stem.partition("-")[0]]
    for exercise in exercises:
        section = html.partition(f'data-exercise="{exercise.name}"')[2].partition("</section>")[0]
        cell = f"{path.stem.partition('-')[0]}-{exercise.number}-answer"
        found = re.findall(r'data-cell="(.*?)">.*?<textarea[^>]*>\n(.*?)</textarea>', section, re.DOTALL)
        assert [(name, unescape(text)) for name, text in found] == (
            [] if exercise.way in NEEDS else [(cell, texts[cell])]
        )
        assert "student" not in section or exercise.way in NEEDS
    assert about["setup"] == texts["setup"]
    assert "torch" not in about["setup"]
    assert about["exercises"] == [exercise.name for exercise in exercises if exercise.way not in NEEDS]


def test_only_pages_with_an_editor_load_the_script():
    assert up_to_date()
    script = re.compile(r"<script[^>]*in-page\.js")
    with_script = {path.stem for path in checkout.PAGES.rglob("*.html") if script.search(path.read_text("utf-8"))}
    assert with_script == {path.stem for path in SHEETS} | {"playground", "story"}


# The session


class Page:
    """A session, and what it sends."""

    def __init__(self, setup="import numpy as np\nfrom subnorm_lab import checks", exercises=("layer_norm", "fold")):
        self.session, self.sent = Session(setup, exercises), []

    def run(self, code, check="", before=()):
        self.sent.clear()
        parts = [*((*cell, False) for cell in before), ("layer_norm", code, True)]  # as the worker gives them
        return json.loads(self.session.run("layer_norm", code, check, self.sent.append, parts))

    @property
    def output(self):
        return "".join(self.sent)


def test_a_cell_prints_and_shows_its_last_value():
    page = Page()
    nothing = {"error": "", "line": 0, "verdict": "", "tag": "", "full": False}
    assert page.run("print('a')\nx = 2\nx + 1") == nothing
    assert page.output == "a\n3\n"
    page.run("x")
    assert page.output == "2\n"
    page.run("None")
    page.run("checks.progress")
    page.run("import sys; print('err', file=sys.stderr)")
    assert page.output == "err\n"


def test_a_verdict_is_what_the_check_prints_and_other_output_is_not(capsys):
    code = "def layer_norm(*inputs):\n    print('working')\n    return inputs[0]"
    names = {"np": np}
    exec(code, names)
    checks.layer_norm(names["layer_norm"])
    printed = capsys.readouterr().out
    page = Page()
    result = page.run(code, "checks.layer_norm(layer_norm)")
    assert (page.output + result["verdict"]).strip() == printed.strip()
    assert result["verdict"].startswith("✗ layer_norm: on a (3, 8) batch, the values are not right: result[")
    assert set(page.output.split()) == {"working"}


def test_a_check_has_the_tag_that_progress_prints():
    page = Page()
    assert page.run("def layer_norm(*inputs): return 1", "checks.layer_norm(layer_norm)")["tag"] == "shape"
    assert page.run("def layer_norm(*inputs): ...", "checks.layer_norm(layer_norm)")["tag"] == "not_done"
    page.run("checks.progress()")
    assert "○ layer_norm (not_done)\n" in page.output
    assert page.run("layer_norm")["tag"] == ""


def test_cells_that_come_first_define_names_and_print_nothing():
    page = Page()
    first = [("norm", "print('loud')\ndef norm(): return 2"), ("head", "twice = 2 * norm()")]
    page.run("twice", before=first)
    assert page.output == "4\n"
    failed = page.run("print('not reached')", before=[("norm", "x = 1\n1 / 0"), ("head", "y = 1")])
    assert (page.output, failed["line"]) == ("", 0)
    assert 'File "<norm>", line 2' in failed["error"]
    assert page.run("y")["error"].endswith("NameError: name 'y' is not defined")


def test_a_session_can_begin_anew():
    page = Page()
    page.run("x = 1")
    page.session.forget()
    assert "NameError" in page.run("x")["error"]
    assert page.run("np.pi")["error"] == ""


@pytest.mark.parametrize(
    ("code", "line", "last"),
    [
        ("def f():\n    return 1 / 0\n\nf()", 2, "ZeroDivisionError: division by zero"),
        ("a = 1\nb = = 2", 2, "SyntaxError: invalid syntax"),
        ("import json\njson.loads('{')", 2, "JSONDecodeError: Expecting property name"),
        ("try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('no') from e", 4, "ValueError: no"),
        (
            "import absent",
            1,
            "Use the notebook for everything else.",
        ),
        ("fold(1)", 1, "fold is defined by another cell of this page: run that one first."),
        ("nothing", 1, "NameError: name 'nothing' is not defined"),
        ("input()", 1, "EOFError: nobody can answer input() in a page: write the value into the code"),
        ("raise SystemExit", 1, "SystemExit"),
    ],
)
def test_an_error_has_its_line_and_no_frame_of_ours(code, line, last):
    result = Page().run(code)
    assert result["line"] == line
    assert last in result["error"].split("\n")[-1]
    assert "session.py" not in result["error"]
    assert result["error"].count(code.split("\n")[line - 1].strip()) >= 1  # the source is shown


def test_an_error_before_the_check_leaves_no_verdict():
    result = Page().run("1 / 0", "checks.layer_norm(layer_norm)")
    assert (result["verdict"], result["line"]) == ("", 1)


def test_a_full_memory_is_reported():
    assert Page().run("raise MemoryError")["full"]


def test_long_output_is_cut_and_sent_in_pieces():
    page = Page()
    page.run("for k in range(10_000): print('line', k)")
    cut = "\n… cut after 20,000 characters"
    assert page.output.endswith(cut)
    assert len(page.output) == MOST + len(cut)
    page.run("import time\nfor k in range(3):\n    print(k)\n    time.sleep(0.2)")
    assert len(page.sent) > 1
    assert page.output == "0\n1\n2\n"


def test_completions_are_the_public_names():
    page = Page()
    assert "promote_types" in json.loads(page.session.complete("np"))
    assert "norm" in json.loads(page.session.complete("np.linalg"))
    page.run("class Odd:\n    @property\n    def a(self): raise ValueError\nodd = Odd()")
    for path in ("absent", "np.absent", "odd.a"):
        assert page.session.complete(path) == "[]"
