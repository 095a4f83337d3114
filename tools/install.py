"""Install the pinned packages into .venv. Standard library only.

Each command of course.py needs some of the requirement files; .venv gets only what the commands that you call need. A
record in .venv says what is in it, and has no "home" while an install runs: so an install that was cut off is begun
again in an empty .venv, and one that failed before it changed anything costs nothing.
"""

import hashlib
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time
import tomllib

from tools import checkout

INSTALLED = checkout.VENV / "course.json"
LOG = checkout.VENV / "install.log"
READ = ["requirements-book.txt"]
RUN = ["requirements.txt"]  # with requirements-book.txt, and with torch
TEST = [*RUN, "requirements-dev.txt"]
NETWORK = r"NewConnectionError|name resolution|getaddrinfo|timed? ?out|ProxyError|SSLError|Connection\w*Error"


def install(files: list, torch_index: str) -> None:
    """Bring .venv to the pinned versions of the requirement files; take torch from `torch_index`, too, if given."""
    with checkout.locked():
        have = checkout.read_json(INSTALLED)
        index = torch_index or have.get("torch index", "")  # asked for once: a .venv made again keeps its kind of torch
        want = requirements(files)
        usable = checkout.PYTHON.exists() and have.get("home") == want["home"]
        if usable and index != have.get("torch index", ""):
            if RUN[0] in have:  # for pip it is the same version: it would change nothing
                sys.exit(
                    f".venv has torch already. To take it from {index}, remove {checkout.VENV}, "
                    "then run this command again."
                )
            have["torch index"] = index  # for the first command that needs torch
            INSTALLED.write_text(json.dumps(have), "utf-8")
        if usable and want.items() <= have.items():
            return
        begun = json.dumps({"torch index": index})
        if checkout.PYTHON.exists() and not INSTALLED.exists():
            print("Using the .venv you made. If this install is cut off, the next call removes it and makes a new one.")
        elif not usable:
            make_venv(begun)
            have = {}
        run_pip(files, index, begun)
        INSTALLED.write_text(json.dumps({**have, **want, "torch index": index}), "utf-8")


def run_pip(files: list, index: str, begun: str) -> None:
    """Install `files`; the record of .venv is `begun` meanwhile, and what it was if pip fails before it changes any."""
    start = time.monotonic()
    before = INSTALLED.read_text("utf-8") if INSTALLED.exists() else ""
    INSTALLED.write_text(begun, "utf-8")
    wait = "a minute" if files == READ else "minutes"
    print(f"Installing {' and '.join(files)} into .venv: {wait} the first time; it then takes {disk_space(files)}")
    status = None
    try:
        status = run_logged(pip_command(checkout.PYTHON, files, index))
    finally:  # also after Ctrl+C, which ends many a wait for a network
        log = LOG.read_text("utf-8", "replace")
        if status != 0 and "Installing collected packages" not in log:  # .venv is what it was
            INSTALLED.write_text(before, "utf-8") if before else INSTALLED.unlink()
    if status != 0:
        sys.exit(explain_failure(log, files))
    print(f"Installed in {time.monotonic() - start:.0f} s")


def make_venv(begun: str) -> None:
    """Make an empty .venv whose record is `begun`."""
    if not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
        sys.exit("This Python cannot make a virtual environment. On Debian and Ubuntu: sudo apt install python3-venv")
    if checkout.VENV.exists():
        if checkout.VENV.samefile(sys.prefix):
            sys.exit("The .venv has to be made again, and you are inside it: run `deactivate`, then this command.")
        print("Removing .venv: it is unfinished, was moved, or belongs to another Python")
        checkout.PYTHON.unlink(missing_ok=True)  # first: without its record, a .venv that has a Python passes as yours
        shutil.rmtree(checkout.VENV)
    checkout.VENV.mkdir()
    INSTALLED.write_text(begun, "utf-8")
    if checkout.call([sys.executable, "-m", "venv", checkout.VENV]) != 0:
        sys.exit(f"{sys.executable} -m venv failed; its message is above.")


def with_included(files: list) -> list:
    """Requirement files, and those that they name."""
    names = []
    for name in files:
        text = (checkout.ROOT / name).read_text("utf-8")
        names += [name, *with_included(re.findall(r"^-r +(\S+)", text, re.MULTILINE))]
    return names


def requirements(files: list) -> dict:
    """What `INSTALLED` says once `files` are in .venv, which works neither moved nor under another Python."""
    root = checkout.ROOT
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    package = json.dumps([project.get("build-system"), project.get("project")])  # a setting of ruff installs nothing
    needs = hashlib.sha256(package.encode()).hexdigest()
    return {
        "home": f"Python {sys.version_info[0]}.{sys.version_info[1]} in {checkout.VENV}",
        **{
            n: f"{checkout.digest_of_files([root / n, root / 'constraints.txt'])} {needs}" for n in with_included(files)
        },
    }


def disk_space(files: list) -> str:
    """The disk space that .venv needs for `files`."""
    if files == READ:
        return "0.4 GB"
    return f"{'1.4' if files == RUN else '2.5'} GB with PyTorch's CPU build, several GB with CUDA"


def pip_command(python: pathlib.Path, files: list, torch_index: str) -> list:
    """The command that installs all `files` at once."""
    command = [python, "-m", "pip", "install", "--no-input", "--progress-bar=off", "--disable-pip-version-check"]
    if not sys.dont_write_bytecode:  # else every later process would compile anew
        command += ["--no-compile"]  # most modules are never imported; Python compiles and keeps the others
    command += [word for name in files for word in ("-r", name)]
    if torch_index and files != READ:  # the CPU build is 2.13.0+cpu, which matches ==2.13.0 and which pip prefers
        command += ["--extra-index-url", torch_index]
    return command


def run_logged(command: list) -> int:
    """Exit status of a long command that writes to `LOG`; every ten seconds, print the line it is at."""
    start = time.monotonic()
    words = [str(word) for word in command]
    with LOG.open("wb") as log:
        process = subprocess.Popen(words, cwd=checkout.ROOT, stdout=log, stderr=subprocess.STDOUT)
    while True:
        try:
            return process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            steps = [line for line in LOG.read_text("utf-8", "replace").split("\n") if line[:1].strip()]
            line = steps[-1] if steps else ""  # what pip indents is detail
            print(f"  {time.monotonic() - start:4.0f} s  {line[:100]}", flush=True)


def explain_failure(log: str, files: list) -> str:
    """The end of pip's log, and what to do."""
    missing = re.search(r"No matching distribution found for (\S+)", log)
    if re.search("No space left", log):
        fix = f"The disk is full: {' and '.join(files)} need {disk_space(files)}."
    elif "ResolutionImpossible" in log:  # before the network: pip also got over a slow reply
        fix = f"The pinned versions contradict each other: undo the last change to them. The whole log is {LOG}."
    elif re.search(NETWORK, log, re.IGNORECASE):
        fix = "No connection to the package index: look at the network, the proxy, and --torch-index if you gave it."
    elif missing:
        fix = f"There is no {missing[1]} for Python {sys.version.split()[0]} on {sys.platform}: use Python 3.11."
    else:
        fix = f"pip could not install the packages; the whole log is {LOG}."
    tail = "\n".join(log.rstrip().split("\n")[-12:])
    return f"{tail}\n\n{fix}\nThen run the same command again: what is downloaded already is in pip's cache."
