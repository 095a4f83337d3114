"""``python -m subnorm.classroom release ex01`` makes a student's sheet; ``grade ex01 work/`` grades submissions."""

import argparse
import sys
from pathlib import Path

from subnorm import checks
from subnorm.classroom import release


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m subnorm.classroom", description=(__doc__ or "").replace("``", ""))
    commands = parser.add_subparsers(dest="command", required=True)
    to_release = commands.add_parser("release", help="write the student notebook of a set, and dist/SET.zip")
    to_release.add_argument("sets", nargs="*", metavar="set", help="ex01, ex02, …; all sets if none is given")
    to_release.add_argument("--check", action="store_true", help="write nothing; list stale student notebooks")
    to_release.add_argument("--nbgrader", type=Path, metavar="FOLDER", help="also write a course for nbgrader there")
    to_draft = commands.add_parser("draft", help="put cells for new exercises into the source notebook of a set")
    to_draft.add_argument("set", help="ex01, ex02, …")
    to_grade = commands.add_parser("grade", help="run the notebooks that students handed in, and write grades.csv")
    to_grade.add_argument("set", help="ex01, ex02, …")
    to_grade.add_argument("submissions", type=Path, help="a folder, or the zip of a learning platform")
    to_grade.add_argument("-o", "--out", type=Path, default=Path("grades"), help="output folder (default: grades)")
    to_grade.add_argument("--seed", type=int, help="seed of an earlier run, from its log.json, for the same inputs")
    to_grade.add_argument("--no-sandbox", action="store_true", help="run student code as you, without isolation")
    to_grade.add_argument("--jobs", type=int, help="how many notebooks to run at a time (default: all cores)")
    options = parser.parse_args(arguments)
    wanted = options.sets if options.command == "release" else [options.set]
    for name in wanted:
        if name not in checks.SETS:
            parser.error(f"there is no set {name!r}; the sets are {', '.join(checks.SETS)}")
    if options.command == "release":
        try:
            return release.release(wanted or list(checks.SETS), options.check, options.nbgrader)
        except OSError as error:
            print(f"release: {error.filename}: {error.strerror}", file=sys.stderr)
            return 1
    if options.command == "draft":
        return release.draft(options.set)
    if options.seed is not None and options.seed < 0:
        parser.error(f"--seed must be 0 or more; got {options.seed}")
    if options.jobs is not None and options.jobs < 1:
        parser.error(f"--jobs must be 1 or more; got {options.jobs}. Leave it out for all cores")
    from subnorm.classroom import grade

    return grade.grade(
        options.set, options.submissions, options.out, options.seed, not options.no_sandbox, options.jobs
    )


if __name__ == "__main__":
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # output redirected on Windows may use a code page without "…"
    sys.exit(main())
