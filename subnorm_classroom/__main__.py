"""``python -m subnorm_classroom release ex01`` makes a student's sheet; ``grade ex01 work/`` grades submissions;
``mark`` sets marks by hand; ``handback`` makes the files for the learning platform; ``overview`` shows what the class
has not understood.
"""

import argparse
import signal
import sys

from subnorm_classroom.errors import exit_status
from subnorm_classroom.grading import grade
from subnorm_classroom.reports import handback, mark, overview
from subnorm_classroom.sheets import draft, release

COMMANDS = {
    "release": release, "draft": draft, "grade": grade, "mark": mark, "handback": handback, "overview": overview,
}  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Run one command, and return its exit status."""
    options = parser().parse_args(arguments)
    return exit_status(options.command, lambda: int(options.run(options)))


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m subnorm_classroom", description=(__doc__ or "").replace("``", ""))
    commands = parser.add_subparsers(dest="command", required=True)
    for name, module in COMMANDS.items():
        command = commands.add_parser(name, help=module.HELP)
        module.add_arguments(command)
        command.set_defaults(run=module.run_command)
    return parser


def stop(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # output redirected on Windows may use a code page without "…"
    signal.signal(signal.SIGTERM, stop)  # a batch system that ends a job
    sys.exit(main())
