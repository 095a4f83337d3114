"""Parts of the program inside the sandbox, without a sandbox."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from subnorm_classroom.grading import child
from subnorm_lab.checks.collect import Case

SAYS = """
import os, sys
from subnorm_classroom.grading import child
say = child.take_streams()
print("printed", flush=True)
os.system("echo by a program; echo an error >&2")
os.write(2, b"an error")
say(read=sys.stdin.read(), long="x" * 100_000)
"""


def test_only_messages_leave_the_process():
    done = subprocess.run([sys.executable, "-c", SAYS], input="the job", capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"read": "\n" * child.EMPTY_LINES, "long": "x" * 100_000}
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


@pytest.mark.parametrize(("hard", "limit"), [(-1, 5), (3, 3), (9, 5)])
def test_a_limit_is_never_raised(hard, limit, monkeypatch):
    made = {}

    def setrlimit(number, limits):
        if number == 1:
            raise ValueError  # as macOS does
        made[number] = limits

    numbers = {"RLIM_INFINITY": -1, "RLIMIT_AS": 1, "RLIMIT_CPU": 2}
    known = SimpleNamespace(**numbers, getrlimit=lambda number: (hard, hard), setrlimit=setrlimit)
    monkeypatch.setitem(sys.modules, "resource", known)
    child.limit_myself({"NEW": 1, "AS": 5, "CPU": 5})
    assert made == {2: (limit, limit)}


def test_a_system_without_limits_has_none(monkeypatch):
    monkeypatch.setitem(sys.modules, "resource", None)
    child.limit_myself({"CPU": 5})


def one_of_two(cells):
    """What is sent of a notebook with these cells, where `f` and `g` are asked for."""
    said = []
    asking = child.Asking(
        lambda **message: said.append(message), {name: ("function", [Case("one", (3,))]) for name in "fg"}
    )
    checks = child.Checks(asking)
    for number, cell in enumerate(cells, 1):
        asking.go_on_with(number)
        cell(checks)
    return [message for message in said if message.get("at") != "question"]


def sent(name, value):
    return {"checked": name, "attempts": [[[value, "", "", 0, False, [], [], ""]]]}


def test_a_check_sends_what_it_is_given_and_says_it_is_right():
    def cell(checks):
        assert checks.f(lambda x: 2 * x).tag == "right"
        assert checks.g(g, variant="twice")
        assert checks.progress()
        assert checks.h(print)
        checks.f(3)

    def g(x):
        return x

    on = {"at": "cell", "cell": 1}
    assert one_of_two([cell]) == [on, sent("f", 6), on, sent("g", 3), on]


def test_a_check_inside_an_answer_and_one_in_a_loop_end():
    def inside(checks):
        def f(x):
            checks.f(f)
            return x

        checks.f(f)

    def loop(checks):
        for k in range(1000):
            checks.g(lambda x, k=k: k)

    on = {"at": "cell", "cell": 1}
    assert one_of_two([inside]) == [on, sent("f", 3), on]
    assert len(one_of_two([loop])) == 2 * child.MOST_CHECKS + 1


def test_a_module_of_checks_has_no_other_attributes():
    assert not hasattr(child.Checks(None), "__wrapped__")


NEWER = {
    "3.12": ["type X = int", "type X[T] = list[T]", "def f[T](x): pass", "class A[T]: pass", 'print(f"{d["a"]}")',
             "f'{x['mean']:.2f}, eps'", 'f"{f"{1}"}"', r"""f'{"\n".join(a)}'""", 'f"{", ".join(a)}"'],
    "3.13": ["class A[T = int]: pass", "def f[T=int](x): pass", "type X[T = int] = list[T]"],
    "3.14": ["except ValueError, KeyError:", 'x = t"a{b}"', "t'{x}'"],
    "": ["def f(:", "x = (1", "if x", 'print "a"', 'f"{a b}"', 'f"{a"', 'x = "a"b"', "f'it's {a}'", 'f"{a}"b"',
         "x = 'don't'", "class A(:", "type x", "return"],
}  # fmt: skip


@pytest.mark.parametrize(("newer", "line"), [(newer, line) for newer, lines in NEWER.items() for line in lines])
def test_syntax_of_a_newer_python_is_known(newer, line):
    error = SyntaxError("invalid syntax", ("<cell>", 3, 1, f"    {line}\n"))
    assert child.newer_syntax(error, version=(3, 11)) == newer
    assert child.newer_syntax(error, version=(3, 14)) == ""
    assert child.newer_syntax(SyntaxError("no text"), version=(3, 11)) == ""


CELLS = {
    'def f(x):\n    return f"{\n        x.shape\n    }"': "3.12",
    'y = 1\nprint(f"a {x  # the shape\n}")': "3.12",
    'print(f"{x)\nprint("}")': "",
    'print(f"{x")\ny = {1: 2}': "",
    'print("{\n}")': "",
}


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python can read them")
@pytest.mark.parametrize("source", CELLS)
def test_a_line_break_in_the_braces_of_a_text_is_the_syntax_of_3_12(source):
    with pytest.raises(SyntaxError) as caught:
        compile(source, "<cell>", "exec")
    assert child.newer_syntax(caught.value, source) == CELLS[source]
