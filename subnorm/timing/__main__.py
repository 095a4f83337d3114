"""Measure and print every table of this machine, or the named ones; ``--record`` stores them as JSON."""

import argparse
import sys
from functools import partial
from pathlib import Path

from subnorm.timing.measure import device_here
from subnorm.timing.record import FEWEST, PLAN, take, write
from subnorm.timing.replay import table


def main(arguments: list[str]) -> None:
    plan = PLAN[device_here()]
    parser = argparse.ArgumentParser(prog="python -m subnorm.timing", description=__doc__)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"one of {', '.join(plan)} (default: all)")
    parser.add_argument("--rounds", type=int, default=FEWEST, help=f"how often to time each case (default: {FEWEST})")
    parser.add_argument("--record", action="store_true", help="store the measurement")
    parser.add_argument("--folder", type=Path, default=Path(__file__).with_name("records"), help="where to store it")
    options = parser.parse_args(arguments)
    if unknown := set(options.tables) - set(plan):
        parser.error(f"no table {', '.join(sorted(unknown))} here; there are {', '.join(plan)}")
    if options.rounds < FEWEST:
        parser.error(f"--rounds must be at least {FEWEST}; fewer give no quartiles")
    wanted = {name: shapes for name, shapes in plan.items() if name in options.tables or not options.tables}
    rounds = [f"--rounds {options.rounds}"] if options.rounds != parser.get_default("rounds") else []
    command = " ".join(
        ["python -m subnorm.timing", *options.tables, *rounds, *(["--record"] if options.record else [])]
    )
    tell = partial(print, "timing", flush=True)
    keep = partial(write, folder=options.folder, whole=False) if options.record else lambda record: None
    record = take(wanted, options.rounds, command=command, tell=tell, keep=keep)
    print(f"\n{table(record)}")
    if options.record:
        print(f"\nwritten to {write(record, options.folder)}")


if __name__ == "__main__":
    main(sys.argv[1:])
