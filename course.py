#!/usr/bin/env python3
"""Build, test, read and run the course. Needs only Python 3.11 or newer."""

import argparse
import os
import re
import shutil
import signal
import sys
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036, nothing is installed yet
    version = sys.version.split()[0]
    sys.exit(f"The course needs Python 3.11 or newer; this is {version}. Get it at https://www.python.org")

sys.path.insert(0, str(Path(__file__).resolve().parent))

from tools import build, checkout, install, serve, test

NOTE = """All but build and serve also install the rest: PyTorch, JupyterLab, the tools of the tests.
Steps that are up to date are skipped. `course.py COMMAND --help` names the options of a command."""


def run_module(name: str, words: list) -> bool:
    """Run a module in .venv."""
    return checkout.call([checkout.PYTHON, "-m", name, *words]) == 0


def serve_book(args: argparse.Namespace) -> bool:
    """Build the book and serve it; a build that fails leaves the pages of the last good one to serve."""
    good = build.build()
    if (checkout.PAGES / "index.html").is_file():
        serve.serve(args.port)
    return good


def open_lab(_args: argparse.Namespace) -> bool:
    """Open the start page in JupyterLab, and leave Ctrl+C to it, which asks before it stops."""
    signal.signal(signal.SIGINT, lambda *_: None)
    defaults = filter(None, [os.environ.get("JUPYTER_CONFIG_PATH"), str(checkout.ROOT / "tools" / "jupyterlab")])
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(defaults)  # the reader's own settings count more
    return checkout.call([checkout.PYTHON, "-m", "jupyterlab", "README.md"], cwd=checkout.ROOT / "notebooks") == 0


def prepare(_args: argparse.Namespace) -> bool:
    """Say how to grade; everything that it needs is installed by now, or named."""
    if not shutil.which("bwrap"):
        print("To grade safely, install bubblewrap. On Debian and Ubuntu: sudo apt install bubblewrap")
    print(f"Ready: {checkout.PYTHON.relative_to(checkout.ROOT)} -m subnorm_classroom")
    return True


def refresh(args: argparse.Namespace) -> bool:
    """Run notebooks again; -P keeps the modules of tools/ from shadowing those that a notebook imports."""
    script = checkout.ROOT / "tools" / "refresh.py"
    return checkout.call([checkout.PYTHON, "-P", script, *map(os.path.abspath, args.notebooks)]) == 0


def begin(args: argparse.Namespace) -> bool:
    """Write the start of something new."""
    return run_module("tools.new", [args.kind, args.name])


def speed(args: argparse.Namespace) -> bool:
    """Measure, and leave Ctrl+C to the measuring process, which prints what is left."""
    signal.signal(signal.SIGINT, lambda *_: None)
    return run_module("tools.speed", [*(["--install"] if args.install else []), *args.measures])


def port_number(text: str) -> int:
    """A port from the command line."""
    if not re.fullmatch("[0-9]+", text) or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"a port is a number from 1 to 65535, not {text!r}; the default is 8000")
    return int(text)


def parser() -> argparse.ArgumentParser:
    """The command line: each command with what it needs in .venv and what it runs."""
    whole = argparse.ArgumentParser(
        prog="course.py", description=__doc__, epilog=NOTE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = whole.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def add(name: str, needs: list, run, about: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=about, description=about)
        command.set_defaults(needs=needs, run=run)
        command.add_argument(
            "--torch-index",
            metavar="URL",
            help="take torch from this package index, e.g. its CPU build, now or when a command first needs it",
        )
        return command

    add("build", install.READ, lambda _: build.build(), "make .venv, install what the book needs, build the book")
    command = add("test", install.TEST, lambda args: test.run_tests(args.part), "build, then run all tests")
    command.add_argument("part", nargs="?", choices=["package"], help="only lint, types and the package: a minute")
    command = add("serve", install.READ, serve_book, "build, then show the book on a local web server")
    command.add_argument("--port", type=port_number, default=8000, help="(default: 8000)")
    add("lab", install.RUN, open_lab, "open the notebooks in JupyterLab")
    add("prepare", install.RUN, prepare, "install what a teacher needs to hand out and grade sheets, and return")
    command = add("refresh", install.RUN, refresh, "run notebooks again and store their outputs")
    command.add_argument("notebooks", nargs="*", metavar="notebook", help="only these; all if not given")
    command = add("new", install.RUN, begin, "begin a chapter, an exercise or a placement")
    command.add_argument("kind", choices=["chapter", "exercise", "placement"])
    command.add_argument("name", help="such as 10-my-chapter, ex01/my_answer or MyPlacement")
    pack = "build, then make a zip and PDFs of the book, to take along: minutes"
    add("pack", install.TEST, lambda _: build.build() and run_module("tools.pack", []), pack)
    command = add("speed", install.TEST, speed, "measure how long all this takes, for the table in tools/speed.md")
    command.add_argument("measures", nargs="*", metavar="measure", help="only these; all if not given")
    command.add_argument("--install", action="store_true", help="also the install, which needs the network")
    return whole


def main(words: list) -> bool:
    """Run a command line."""
    args = parser().parse_args(words)
    install.install(args.needs, args.torch_index)
    return args.run(args)


if __name__ == "__main__":
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # output redirected on Windows may use a code page without σ and ✓
    try:
        sys.exit(0 if main(sys.argv[1:]) else 1)
    except KeyboardInterrupt:
        sys.exit("\nInterrupted. Run the same command again to continue.")
