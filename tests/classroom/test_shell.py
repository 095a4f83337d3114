"""What people write in notebooks does in the sandbox what it does in Jupyter."""

import time

import nbformat
import pytest
from nbclient import NotebookClient

from subnorm_classroom.grading import sandbox, wire
from subnorm_classroom.grading.sandbox import NoSandbox, Sandbox

TRACE = """import functools, inspect
def shown(f):
    f.lines = len(inspect.getsource(f).splitlines())
    return f"""
#: A cell, and what is then true, as an expression.
HABITS = [
    # help and looking around
    ("help(len)\na1 = 1", "a1 == 1"),
    ("?len\na2 = 2\nlen?", "a2 == 2"),
    ("sum??", "True"),
    ("x3 = 3\n%who\n%whos", "x3 == 3"),
    ("%lsmagic", "True"),
    ("dir()\nvars()\nglobals()['a6'] = 6", "a6 == 6"),
    ("import pydoc\na7 = pydoc.render_doc(len)", "'len' in a7"),
    ("%history -n 1-3\na8 = In[1]", "isinstance(a8, str) and len(In) > 8"),
    # results of cells
    ("6 * 7", "_ == 42"),
    ("'Out of it'", "'Out of it' in Out.values()"),
    ("11 * 11", "Out[max(Out)] == 121 and eval(f'_{max(Out)}') == 121"),
    ("12; ", "True"),
    ("b13 = _i", "isinstance(b13, str)"),
    ("In[-1]", "'In[-1]' in _"),
    # source of functions
    (TRACE, "callable(shown)"),
    ("@shown\ndef f16(x):\n    # a comment\n    return x", "f16.lines == 4 and f16(3) == 3"),
    ("class A17:\n    def f(self):\n        return 1\na17 = inspect.getsource(A17.f)", "'return 1' in a17"),
    ("@functools.lru_cache\ndef f18(x):\n    return x", "f18(2) == 2"),
    # magics
    ("%matplotlib inline\na19 = 1", "a19 == 1"),
    ("%config InlineBackend.figure_format = 'retina'\na20 = 1", "a20 == 1"),
    ("%load_ext autoreload\n%autoreload 2\na21 = 1", "a21 == 1"),
    ("%%time\na22 = 22", "a22 == 22"),
    ("%time a23 = 23", "a23 == 23"),
    ("t24 = %timeit -o -n 2 -r 2 sum([1, 2])\na24 = f'{t24.average:.1f}'", "a24 == '0.0'"),
    ("%%timeit -n 1 -r 1\nsum([1, 2])", "True"),
    ("%%capture out26\nprint('hello')\na26 = 26", "a26 == 26 and out26.stdout == 'hello\\n'"),
    ("%%capture\nclass B27: pass", "B27.__name__ == 'B27'"),
    ("%%bash\ntouch made_28", "__import__('os').path.exists('made_28')"),
    ("%%writefile helper29.py\ndef seven():\n    return 7", "True"),
    ("from helper29 import seven\na30 = seven()", "a30 == 7"),
    ("%run helper29.py\na31 = seven()", "a31 == 7"),
    ("%env HABIT=32\nimport os\na32 = os.environ['HABIT']", "a32 == '32'"),
    ("%precision 3\na33 = 1", "a33 == 1"),
    ("%%html\n<b>x</b>", "True"),
    ("%%javascript\nalert(1)", "True"),
    ("%pwd\na36 = %pwd", "a36 == os.getcwd()"),
    ("%prun -q sum([1])\na37 = 1", "a37 == 1"),
    ("get_ipython().run_line_magic('matplotlib', 'inline')\na38 = 1", "a38 == 1"),
    ("from IPython import get_ipython\na39 = get_ipython().__class__.__name__", "bool(a39)"),
    ("%xmode Plain\n%pdb off\na40 = 1", "a40 == 1"),
    # the shell
    ("!ls\na41 = !echo one; echo two", "list(a41) == ['one', 'two']"),
    ("n42 = 'x'\na42 = !echo {n42}", "a42.n == 'x'"),
    ("ls", "True"),
    ("%cd -q /\na44 = os.getcwd()\n%cd -q -", "a44 == '/'"),
    # display
    ("display(1, 'two')\na45 = 1", "a45 == 1"),
    ("from IPython.display import HTML, Markdown, clear_output, display\ndisplay(HTML('<b>'), Markdown('x'))\n"
     "clear_output()\na46 = 1", "a46 == 1"),
    ("class C47:\n    def _repr_html_(self):\n        return '<b>'\nC47()", "isinstance(_, C47)"),
    ("print('x', end='', flush=True)\nimport sys\nsys.stdout.flush()\na48 = 1", "a48 == 1"),
    # Python's own
    ("from __future__ import annotations", "True"),
    ("def f50(x: Nobody) -> Nobody:\n    return x", "f50(1) == 1"),
    ("import asyncio\nawait asyncio.sleep(0)\na51 = 1", "a51 == 1"),
    ("async def f52():\n    return 52\na52 = await f52()", "a52 == 52"),
    ("import getpass, pathlib\na53 = bool(getpass.getuser() and pathlib.Path.home())", "a53"),
    ("import dataclasses\n@dataclasses.dataclass\nclass D54:\n    x: int = 1", "D54() == D54(1)"),
    ("import pickle\na55 = pickle.loads(pickle.dumps(D54()))", "a55 == D54()"),
    ("a56 = __name__\nif __name__ == '__main__':\n    b56 = 1", "a56 == '__main__' and b56 == 1"),
    ("import sys\na57 = sys.modules['__main__'].a56", "a57 == '__main__'"),
    ("import warnings, logging\nwarnings.filterwarnings('ignore')\nlogging.basicConfig()\na58 = 1", "a58 == 1"),
    ("import typing\na59 = typing.get_type_hints(f52)", "a59 == {}"),
    ("with open('made_60.txt', 'w') as file:\n    file.write('x')\na60 = open('made_60.txt').read()", "a60 == 'x'"),
    ("import copyreg, this\nexit\na61 = 1", "a61 == 1"),
    ("a62 = 1\nraise ValueError('on purpose')", "a62 == 1"),
    ("print(chr(0xD800), 'λ')\na66 = 1", "a66 == 1"),
    ("%debug -h\na63 = 1", "True"),
    ("del a62\n'a62' in globals()", "_ is False"),
    ("%reset -f", "'a63' not in globals()"),
]  # fmt: skip
FIRST = "import sys\nsys.seen = {}"
LOOK = "def look(x):\n    import sys\n    return sys.seen"


def cells():
    """The cells of a notebook of all habits; after each it is noted whether the expression is true."""
    noted = [f"import sys; sys.seen['{k}'] = bool({true})" for k, (_, true) in enumerate(HABITS)]
    return [FIRST, *(cell for (source, _), note in zip(HABITS, noted, strict=True) for cell in (source, note)), LOOK]


WANTED = {str(k): True for k in range(len(HABITS))}


def heard_from(box, *cells):
    """How a notebook of cells (tags, source) ends, and the messages of its cells and of its function `look`."""
    numbered, heard = [[k, *cell] for k, cell in enumerate(cells)], []
    job = {"torch": False, "cells": numbered, "questions": [["look", "function", [["one", [None]]]]]}
    return box.run(job, heard.append, time.monotonic() + 3000), heard


def answer_and_errors(box, sources, tags=()):
    """What the function `look` of a notebook returns at its end, and the errors of its cells."""
    ending, heard = heard_from(box, *((tags, source) for source in sources))
    found = [wire.unpack_outcome(message["attempts"][0][0]) for message in heard if "answer" in message]
    assert found, ending
    return found[0].value, [(message["cell_error"], message["error"]) for message in heard if "cell_error" in message]


def test_ordinary_habits_do_in_the_sandbox_what_they_do_in_jupyter(box):
    found, errors = answer_and_errors(box, cells())
    assert {k: HABITS[int(k)][0] for k in WANTED if not found.get(k)} == {}
    assert len(HABITS) >= 60
    raised = {HABITS[(k - 1) // 2][0] for k, _ in errors}
    assert raised == {"a62 = 1\nraise ValueError('on purpose')"}


@pytest.mark.slow
def test_these_habits_do_so_in_jupyter(tmp_path):
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells()])
    book.cells.append(nbformat.v4.new_code_cell("look(0)"))
    NotebookClient(
        book, timeout=600, kernel_name="python3", allow_errors=True, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    found = eval(book.cells[-1].outputs[-1]["data"]["text/plain"])
    assert {k: HABITS[int(k)][0] for k in WANTED if not found.get(k)} == {}


def test_what_this_machine_lacks_does_no_harm(box):
    sources = [
        "%load_ext no_such_extension\na = 1", "%no_such_magic\nb = 2", "%%no_such_magic\nc = 3",
        "%matplotlib widget\nd = 4",
        "%load_ext autoreload\n%autoreload 17 18\ne = 5", "f = input('name? ')", "g = input() + input()",
        "exit()\nh = 8",
        "quit", "import sys\nsys.exit()", "%gui qt\ni = 9", "!no_such_program\nj = 10",
        "import getpass\nk = getpass.getpass('?')", "%debug",
        "def look(x):\n    return [globals().get(n) for n in 'abcdefghijk']",
    ]  # fmt: skip
    found, errors = answer_and_errors(box, sources)
    assert found == [1, 2, None, 4, 5, "", "", 8, 9, 10, ""]
    assert {error for _, error in errors} == {"SystemExit"}


def test_one_failed_line_of_a_setup_cell_does_not_take_the_others(box):
    source = "import no_such_module\n%matplotlib inline\nimport os\n1 / 0\ntext = '''a\nb'''"
    look = "def look(x):\n    return ['os' in globals(), globals().get('text'), len(In)]"
    for tags, wanted in ((["setup"], [True, "a\nb", 3]), ([], [False, None, 3])):
        found, errors = answer_and_errors(box, [source, look], tags)
        assert found == wanted
        assert set(errors) == {(0, "ModuleNotFoundError"), *([(0, "ZeroDivisionError")] if tags else [])}
        assert errors[0] == (0, "ModuleNotFoundError")


def test_a_long_error_is_cut(box):
    own = "class Own(Exception):\n    def __str__(self):\n        raise self"
    ending, heard = heard_from(box, ((), "raise KeyError('x' * 400)"), ((), own), ((), "raise Own"))
    assert ending.how == "end"
    told = [(one["error"], one["message"]) for one in heard if "cell_error" in one]
    assert told == [("KeyError", "'" + "x" * 299), ("Own", "")]


def test_timeit_runs_its_code_once(box):
    sources = ["n = [0]\ndef f():\n    n[0] += 1", "%timeit f()", "def look(x):\n    return n[0]"]
    found, _ = answer_and_errors(box, sources)
    assert 1 <= found < 20  # it looks for a number of loops that take a while


def test_without_ipython_the_teacher_reads_what_to_install(monkeypatch):
    found = sandbox.importlib.util.find_spec
    monkeypatch.setattr(sandbox.importlib.util, "find_spec", lambda name: None if name == "IPython" else found(name))
    with pytest.raises(NoSandbox, match=r"pip install -e '\.\[classroom\]'"):
        Sandbox()
