"""The modules that importing the package loads, and the existence of every public name."""

import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import subnorm

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("module", "stays_out"),
    [
        ("subnorm", {"numpy", "torch", "matplotlib", "IPython"}),
        ("subnorm._rules", {"numpy", "torch", "matplotlib", "IPython"}),
        ("subnorm.numpy", {"torch", "matplotlib", "IPython"}),
        ("subnorm_lab.checks", {"torch", "matplotlib", "IPython"}),
        ("subnorm.torch", {"matplotlib", "IPython"}),
        ("subnorm_lab.report", {"torch", "matplotlib"}),
        ("subnorm_lab.figures", {"torch", "matplotlib"}),
        ("subnorm_lab.live", {"torch", "matplotlib"}),
    ],
)
def test_an_import_brings_no_more_than_it_needs(module: str, stays_out: set[str]) -> None:
    code = f"import {module}, sys; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert module in loaded
    assert not stays_out & loaded


@pytest.mark.parametrize("module", ["subnorm.numpy", "subnorm.torch"])
def test_every_public_name_is_there_with_a_docstring(module: str) -> None:
    namespace = importlib.import_module(module)
    for name in namespace.__all__:
        value = getattr(namespace, name)
        assert not callable(value) or value.__doc__, name


def test_the_version_is_that_of_the_project_file() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert subnorm.__version__ == project["version"]
