"""Programs that some tests need and that pip does not install, or not everywhere.

Without the program such a test is a skip that names it; with CI=true it is a failure.
"""

import contextlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools import browser


def nbgrader_path() -> str | None:
    """nbgrader of this environment; the environment variable NBGRADER names another one."""
    return os.environ.get("NBGRADER") or shutil.which("nbgrader", path=str(Path(sys.executable).parent))


def triton_path() -> str | None:
    """Triton in this environment; pip has it only for Linux."""
    spec = importlib.util.find_spec("triton")
    return spec and spec.origin


def dask_path() -> str | None:
    """Dask's scheduler and workers in this environment."""
    spec = importlib.util.find_spec("distributed")
    return spec and spec.origin


def ordinary_user() -> str | None:
    """A command that starts this Python, or the system's, as an ordinary user who may use NumPy and bubblewrap."""
    if os.name != "posix" or os.getuid() != 0:
        return shlex.quote(sys.executable)
    numpy = importlib.util.find_spec("numpy")
    tried = f"""
import os, subprocess, sys
sys.path.insert(0, {str(Path(str(numpy and numpy.origin)).parents[1])!r})
import numpy
inside = subprocess.run(["bwrap", "--ro-bind", "/", "/", "--unshare-all", "--unshare-user", "true"])
sys.exit(inside.returncode or not os.access(os.path.realpath(sys._base_executable), os.X_OK))
"""
    for python in (sys.executable, "/usr/bin/python3"):
        command = f"setpriv --reuid=65534 --regid=65534 --clear-groups {shlex.quote(python)}"
        with contextlib.suppress(OSError):
            if subprocess.run([*shlex.split(command), "-c", tried], cwd="/", env={"PATH": os.defpath}).returncode == 0:
                return command
    return None


PARTS = {
    "chromium": (browser.chromium_path, browser.FIX),
    "nbgrader": (nbgrader_path, "nbgrader: pip install -r requirements-dev.txt, or set NBGRADER to its path"),
    "triton": (triton_path, "Triton, on Linux: pip install -r requirements-dev.txt"),
    "dask": (dask_path, "Dask: pip install -r requirements-dev.txt"),
    "ordinary user": (ordinary_user, "an ordinary user: setpriv (util-linux), and a Python outside of root's home"),
    "bwrap": (lambda: shutil.which("bwrap"), "bubblewrap, on Linux: apt install bubblewrap"),
}


def need(part: str) -> str:
    """The path of the program `part`. Called in a fixture or a test, it skips if the program is missing."""
    find, fix = PARTS[part]
    path = find()
    if path is None:
        stop = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        stop(f"needs {fix}")
    return path
