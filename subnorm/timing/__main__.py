"""``python -m subnorm.timing`` prints a measurement of this machine; with ``record`` it is kept as JSON."""

import argparse
from pathlib import Path

from subnorm.timing.record import table, take, write


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m subnorm.timing", description=__doc__)
    parser.add_argument("action", nargs="?", choices=["record"], help="keep the measurement")
    parser.add_argument("--folder", type=Path, default=Path(__file__).with_name("records"), help="where to keep it")
    options = parser.parse_args(arguments)
    command = "python -m subnorm.timing" + (f" {options.action}" if options.action else "")
    record = take(command=command)
    print(table(record))
    if options.action == "record":
        print(f"\nwritten to {write(record, options.folder)}")


if __name__ == "__main__":
    main()
