"""Which cells run with NumPy alone, and which earlier statements each needs: planted notebooks."""

import sys

import pytest
from subnorm_book.in_page.cell_needs import Modules, Needs, imports_of

from tools import checkout


def alone(module):
    return module.partition(".")[0] in ("numpy", "math", "functools", "subnorm", "subnorm_lab")


def needed(*cells, strict=True):
    """The code that the last of these cells needs of the others; None if it does not qualify."""
    needs = Needs(cells, alone)
    numbers = needs.before(len(cells) - 1, strict)
    return None if numbers is None else [needs.all[k].code for k in numbers]


@pytest.mark.parametrize(
    "cells",
    [
        ("import torch\nprint(1)",),
        ("from torch import nn",),
        ("import numpy as np\nimport torch", "torch.zeros(3)"),
        ("import torch", "x = torch.zeros(3)", "print(x)"),
        ("import torch", "def f(x):\n    return torch.relu(x)", "f(1)"),  # used only when it is called
        ("import torch", "f = lambda x: torch.relu(x)", "f(1)"),
        ("import torch", "def f():\n    return torch", "def g():\n    return f()", "g()"),
        ("import torch", "class A(torch.nn.Module):\n    pass", "A()"),
        ("import torch", "x = 1\nx = torch.zeros(3)", "x"),
        ("import torch", "x = [1]", "x.append(torch.zeros(3))", "x"),
        ("import torch", "x = {}", "x['a'] = torch.zeros(3)", "x"),
        ("import torch", "x = 1", "for k in range(3):\n    x += torch.ones(1)", "x"),
        ("from numpy import *\nprint(zeros(3))",),  # nobody knows which names these are
        ("from torch import *", "x = 1", "x + relu(x)"),
        ("print(absent)",),
        ("%timeit 1 + 1",),
        ("x = 1\n!ls",),
        ("",),
        ("# nothing",),
        ("import matplotlib.pyplot as plt", "plt.plot([1])"),
    ],
)
def test_a_cell_that_needs_more_does_not_qualify(cells):
    assert needed(*cells) is None


def test_an_import_of_many_is_taken_apart():
    mixed = "import torch\nimport numpy as np, math\nfrom functools import cache, partial\n\ntorch.set_num_threads(1)"
    assert needed(mixed, "partial(np.zeros, 3)()") == ["import numpy as np", "from functools import partial"]


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [
        (("x = 1\ny = 2", "x"), ["x = 1"]),
        (("x = 1", "x = 2", "x"), ["x = 2"]),
        (("x = 1", "if x:\n    x = 2", "x"), ["x = 1", "if x:\n    x = 2"]),
        (("x = 1", "try:\n    x = 2\nexcept:\n    pass", "x"), ["x = 1", "try:\n    x = 2\nexcept:\n    pass"]),
        (("x = 1", "x = x + 1", "x"), ["x = 1", "x = x + 1"]),
        (("x = 1", "x += 1", "x"), ["x = 1", "x += 1"]),
        (("x, y = 1, 2", "y"), ["x, y = 1, 2"]),
        (("for x in range(3):\n    y = x", "x + y"), ["for x in range(3):\n    y = x"]),
        (("with open('a') as f:\n    pass", "f"), ["with open('a') as f:\n    pass"]),
        (("x = {}", "x['a'] = 1", "print(x)", "x"), ["x = {}", "x['a'] = 1"]),
        (("x = {}", "x['a']['b'].c = 1", "x"), ["x = {}", "x['a']['b'].c = 1"]),
        (("x = {'a': 1}", "del x['a']", "x"), ["x = {'a': 1}", "del x['a']"]),
        (("x = []", "x.append(1)", "len(x)", "x"), ["x = []", "x.append(1)"]),
        (("x = []", "y = 3", "x.extend([y])", "x"), ["x = []", "y = 3", "x.extend([y])"]),
        (("x = iter([1])", "next(x)", "x"), ["x = iter([1])", "next(x)"]),
        (
            ("import numpy as np", "x = np.ones(3)", "np.exp(x, out=x)", "np.add.at(x, 0, 1)", "np.exp(x)", "x"),
            ["import numpy as np", "x = np.ones(3)", "np.exp(x, out=x)", "np.add.at(x, 0, 1)"],
        ),
        (
            ("import numpy as np\nrng = np.random.default_rng(0)", "a = rng.normal()", "b = 1", "rng.normal()"),
            ["import numpy as np", "rng = np.random.default_rng(0)", "a = rng.normal()"],
        ),
        (
            (
                "import numpy as np\nrng = np.random.default_rng(0)",
                "def draw(r):\n    return r.normal()",
                "draw(rng)",
                "rng.normal()",
            ),
            [
                "import numpy as np",
                "rng = np.random.default_rng(0)",
                "def draw(r):\n    return r.normal()",
                "draw(rng)",
            ],
        ),
        (
            ("x = []\ndef put(k):\n    x.append(k)", "put(1)", "x"),
            ["x = []", "def put(k):\n    x.append(k)", "put(1)"],
        ),
        (
            ("def put(x):\n    x['a'] = 1", "d = {}", "put(d)", "d"),
            ["def put(x):\n    x['a'] = 1", "d = {}", "put(d)"],
        ),
        (
            ("def f():\n    return g()", "def g():\n    return 1", "f()"),
            ["def f():\n    return g()", "def g():\n    return 1"],
        ),
        (("a = 1", "def f():\n    return a", "a = 2", "f()"), ["def f():\n    return a", "a = 2"]),
        (("k = 7", "[k for k in range(3)]"), []),
        (("k = 7", "def f(k):\n    return k\nf(1)"), []),
        (("k = 7", "def f():\n    k = 1\n    return k\nf()"), []),
        (("k = 7", "def f():\n    global k\n    k = 1\nprint(k)"), ["k = 7"]),
        (("k = [1]", "[j for j in k]"), ["k = [1]"]),
        (("class A:\n    b = 1", "A.b"), ["class A:\n    b = 1"]),
        (
            ("from functools import cache", "@cache\ndef f():\n    return 1", "f()"),
            ["from functools import cache", "@cache\ndef f():\n    return 1"],
        ),
        (("x = 1  # why\ny = (\n    2  # and why\n)", "x + y"), ["x = 1  # why", "y = (\n    2  # and why\n)"]),
        (("import numpy as np", "x = np.sort([2, 1])", "np.zeros(3)"), ["import numpy as np"]),
        (("if (n := 3) > 2:\n    pass", "n"), ["if (n := 3) > 2:\n    pass"]),
        (("x: int = 3", "x"), ["x: int = 3"]),
        (("x = 1", "f'{x:{x}}'"), ["x = 1"]),
    ],
)
def test_what_is_needed_is_what_binds_or_changes_the_names(cells, wanted):
    assert needed(*cells) == wanted


def test_a_change_that_needs_more_spoils_the_object():
    draws = "import numpy as np\nimport torch\nrng = np.random.default_rng(0)"
    assert needed(draws, "torch.from_numpy(rng.normal(size=3))", "rng.normal()") is None
    assert needed(draws, "torch.from_numpy(np.ones(3))", "rng.normal()") is not None


def test_what_the_cell_binds_itself_is_not_needed():
    assert needed("x = 1", "x = 2\nprint(x)") == []
    assert needed("x = 1", "for k in [1]:\n    x = 2\n    print(x)") == []
    assert needed("x = 1", "print(x)\nx = 2") == ["x = 1"]


def test_if_it_need_not_be_strict_names_that_do_not_qualify_are_left_out():
    cells = ("import torch\nx = 1", "y = torch.ones(x)", "print(x, y, absent)")
    assert needed(*cells) is None
    assert needed(*cells, strict=False) == ["x = 1"]


def test_statements_are_grouped_by_cells():
    needs = Needs(["x = 1\ny = 2", "z = 3", "x + y + z"], alone)
    assert needs.groups(needs.before(2)) == [(0, "x = 1\ny = 2"), (1, "z = 3")]


# Modules


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("numpy", True),
        ("numpy.linalg.norm", True),
        ("textwrap.fill", True),
        ("torch", False),
        ("IPython.display", False),
        ("subnorm.numpy", True),
        ("subnorm_lab.report.say", True),
        ("subnorm_lab.stories", True),
        ("subnorm.torch", False),
        ("subnorm_lab.figures", False),
        ("subnorm_lab.experiments.signal", False),  # imports torch
        ("subnorm_lab.live", False),
    ],
)
def test_modules_of_the_package(name, wanted):
    assert Modules(checkout.ROOT).alone(name) is wanted


def test_a_module_needs_all_that_its_import_runs(tmp_path):
    files = {
        "subnorm/__init__.py": "",
        "subnorm/a.py": "from subnorm.b import f\nimport json",
        "subnorm/b/__init__.py": "from subnorm.c import *",
        "subnorm/c.py": "def f():\n    import torch",  # only when it is called
        "subnorm/d/__init__.py": "import torch",
        "subnorm/d/e.py": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    modules = Modules(tmp_path)
    assert modules.needs("subnorm.a") == {"subnorm", "subnorm.a", "subnorm.b", "subnorm.c"}
    assert modules.alone("subnorm.a")
    assert not modules.alone("subnorm.d.e")


def test_the_analysis_needs_the_standard_library_alone():
    """It runs in the page, too."""
    folder = checkout.ROOT / "book/subnorm_book/in_page"
    imported = imports_of((folder / "cell_needs.py").read_text("utf-8"))
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names
