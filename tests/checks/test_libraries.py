"""Checks without PyTorch installed, and PyTorch answers in each dtype."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from checks import test_bank as bank
from checks.test_exercise import an_exercise

from subnorm_lab import checks
from subnorm_lab.checks import collect
from subnorm_lab.checks.collect import Case

ROOT = Path(__file__).parents[2]
WITHOUT_TORCH = """
import contextlib, io, json, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, Blocked())
from subnorm_lab import checks

def raising(error):
    def answer(*args):
        raise error
    return answer

def imports_torch(*args):
    import torch

nonsense = {
    "a text": lambda *args: "nonsense", "None": lambda *args: None, "an input": lambda *args: args[0],
    "no module": raising(ModuleNotFoundError("No module named 'torch'", name="torch")), "an import": imports_torch,
    **{error.__name__: raising(error("nonsense")) for error in (ImportError, AttributeError, ValueError, RuntimeError)},
}
found = {}
with contextlib.redirect_stdout(io.StringIO()) as printed:
    for exercises in checks.SETS.values():
        for exercise in exercises:
            found[exercise.name] = {name: exercise(answer).tag for name, answer in nonsense.items()}
print(json.dumps({"tags": found, "ticks": printed.getvalue().count("\\u2713"), "torch": "torch" in sys.modules,
                  "said": str(checks.make_layer_norm(lambda d, eps: "nonsense"))}))
"""


def test_without_pytorch_no_check_has_a_tick_for_nonsense():
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, cwd=ROOT, check=True)
    found = json.loads(done.stdout.split("\n")[-2])
    assert (found["torch"], found["ticks"]) == (False, 0)
    tags = found["tags"]
    assert set(tags) == set(bank.EXERCISES)
    assert [name for name in tags if "right" in tags[name].values()] == []
    needing = {name for name in tags if "needs_library" in tags[name].values()}
    assert needing == {name for name, exercise in bank.EXERCISES.items() if exercise.way == "module"}
    assert all(set(tags[name].values()) == {"needs_library"} for name in needing)
    assert found["said"] == "○ make_layer_norm: this exercise needs PyTorch, which cannot be imported here."


DTYPES = {torch.float16: 2e-2, torch.bfloat16: 5e-2, torch.float32: 1e-5, torch.float64: 1e-5}
ANSWERS = [
    (name, k)
    for module in bank.BANKS
    for name, answers in getattr(module, "IN_ANY_DTYPE", {}).items()
    for k in range(len(answers))
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("name", "k"), ANSWERS)
def test_an_answer_in_pytorch_is_right_in_each_of_its_dtypes(name, k, dtype):
    answer = next(m.IN_ANY_DTYPE[name][k] for m in bank.BANKS if name in getattr(m, "IN_ANY_DTYPE", {}))
    assert answer in bank.RIGHT[name]
    for case in bank.cases_of(name, 3):
        if case.args[0].dtype != np.float64 and not case.name.startswith(("a (", "a square", "float16 rows of size")):
            continue  # what is at the edge of float16 alone
        args = [torch.tensor(a).to(dtype) if isinstance(a, np.ndarray) else a for a in case.args]
        result = answer(*args)
        wide = [a.double().numpy() if isinstance(a, torch.Tensor) else a for a in args]
        wanted = bank.EXERCISES[name].reference(*wide)
        assert result.dtype == dtype
        np.testing.assert_allclose(result.double().numpy(), wanted, DTYPES[dtype], DTYPES[dtype], err_msg=case.name)


def test_a_result_in_bfloat16_is_said_and_not_numpy_s_error():
    exercise = an_exercise(lambda x: x, lambda rng: [Case("a row", (np.ones(3),))])
    result = exercise(lambda x: torch.tensor(x).bfloat16())
    assert (result.tag, result.seen) == ("error", f"on a row, {collect.UNSUPPORTED['bfloat16']}.")


def in_numpy(x, gamma, beta, eps=1e-5):
    var = x.var(-1, keepdim=True)
    return gamma * (x - x.mean(-1, keepdims=True)) / np.sqrt(var + eps) + beta


def in_torch(x, gamma, beta, eps=1e-5):
    var = x.var(-1, keepdim=True)
    return gamma * (x - x.mean(-1, keepdim=True)) / torch.sqrt(var + eps) + beta


def in_either(x, gamma, beta, eps=1e-5):
    var = x.var(-1, keepdim=True)
    return gamma * (x - x.mean(-1, keepdim=True)) / (var + eps) ** 0.5 + beta


def in_both(x):
    return x / np.sqrt((x * x).mean(-1, keepdim=True))


def test_a_call_that_numpy_refuses_is_the_fault_of_an_answer_in_numpy():
    """With tensors, whose `var` divides by d - 1, it would be another mistake."""
    result = checks.layer_norm(in_numpy)
    assert result.tag == "error"
    assert "it raises TypeError in line" in result.seen
    assert "'keepdim'" in result.seen
    assert checks.layer_norm(in_torch).tag == checks.layer_norm(in_either).tag == "ddof1"
    right = an_exercise(lambda x: x / np.sqrt((x * x).mean()), lambda rng: [Case("a row", (np.arange(4.0),))])
    assert right(in_both)  # with tensors, for which it may be meant
