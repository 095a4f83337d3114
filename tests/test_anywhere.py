"""A sample of tests of each kind, in a copy of the checkout whose path has spaces and special characters."""

import os
import shutil
import subprocess
import sys

from tools import checkout

SAMPLE = [
    "tests/test_parts.py",
    "tests/package/test_import.py",
    "tests/book/test_sources.py",
    "tests/notebooks/test_compared.py::test_only_what_is_stale_fails",  # refreshes a notebook, and runs three
    "notebooks/06d-counting-parameters.ipynb",
]


def test_the_tests_pass_in_a_folder_of_any_name(tmp_path):
    copy = tmp_path / "Mein Kurs" / "subnorm ü"
    shutil.copytree(checkout.ROOT, copy, ignore=checkout.GENERATED)
    env = {**os.environ, "PYTHONPATH": str(copy)}  # before the checkout, which .venv has as installed package
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
    done = subprocess.run([*pytest, *SAMPLE], cwd=copy, env=env, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    where = subprocess.run(
        [sys.executable, "-c", "import subnorm; print(subnorm.__file__)"], cwd=tmp_path, env=env, capture_output=True
    )
    assert where.stdout.decode("utf-8").startswith(str(copy))
