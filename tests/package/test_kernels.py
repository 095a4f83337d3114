"""The fused kernels: their results, and their compiled code."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from helpers.parts import need

HERE = Path(__file__).parent


def printed(*words: str | Path, **variables: str) -> str:
    """The output of a Python program. Triton reads its environment once, so each setting needs its own process."""
    need("triton")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TRITON_")}
    environment |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **variables}
    run = subprocess.run([sys.executable, *words], env=environment, cwd=HERE, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-5000:]
    return run.stdout


def test_the_kernels_compute_what_the_readable_functions_do() -> None:
    """On the GPU where there is one, in Triton's interpreter elsewhere."""
    interpreted = {} if torch.cuda.is_available() else {"TRITON_INTERPRET": "1"}
    printed("-m", "pytest", "-q", "kernel_cases.py", **interpreted)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    return json.loads(printed("compile_kernels.py", TRITON_CACHE_DIR=str(tmp_path_factory.mktemp("triton"))))


def test_memory_is_read_and_written_128_bits_at_a_time(programs: list[dict]) -> None:
    for program in programs:
        narrow = [kind for kind in program["loads"] + program["stores"] if not kind.startswith("v4.b32")]
        # Each row has one mean and one rstd, single numbers. One array read 16 bits at a time would be 8 more at least.
        assert len(narrow) < 8, program["case"]


def test_everything_fits_into_registers(programs: list[dict]) -> None:
    """No register spills to memory, and all intended threads fit on a multiprocessor."""
    for program in programs:
        assert (program["STACK"], program["LOCAL"]) == (0, 0), program["case"]
        assert program["REG"] * program["threads"] <= 65536, program["case"]


def test_a_place_in_a_large_array_is_counted_in_64_bits(programs: list[dict]) -> None:
    """Beyond 2**31 numbers, more than a test can compute: only parameters and their partial sums use 32-bit indices."""
    for program in programs:
        small = {"gamma", "beta", "dgamma", "dbeta"} & set(program["pointers"])
        assert program["offsets"].count("i32") == len(small), program["case"]
        assert program["offsets"].count("i64") == len(set(program["pointers"]) - small - {"mean", "rstd"})
