"""``python -m subnorm_classroom release ex01`` makes a student's sheet; ``grade ex01 work/`` grades submissions;
``mark`` sets marks by hand; ``handback`` makes the files for the learning platform; ``overview`` shows what the class
has not understood.
"""

import argparse
import signal
import sys
from datetime import datetime
from pathlib import Path

from subnorm_classroom.sheets import release
from subnorm_lab import checks


def main(arguments: list[str] | None = None) -> int:
    """Run one command; every error that a teacher can fix is a sentence on standard error."""
    options = parsed(arguments)
    try:
        return run(options)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        advice = "Make room there or allow yourself to use it, then run the same command again"
        print(f"{options.command}: {where}{error.strerror or error}. {advice}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\n{options.command}: stopped. Run the same command again.", file=sys.stderr)
        return 130


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m subnorm_classroom", description=(__doc__ or "").replace("``", ""))
    commands = parser.add_subparsers(dest="command", required=True)
    to_release = commands.add_parser("release", help="write the student notebook of a set, and dist/SET.zip")
    to_release.add_argument("sets", nargs="*", metavar="set", help="ex01, ex02, …; all sets if none is given")
    to_release.add_argument("--check", action="store_true", help="write nothing; list stale student notebooks")
    to_release.add_argument("--nbgrader", type=Path, metavar="FOLDER", help="also write a course for nbgrader there")
    to_release.add_argument("--variants", type=Path, metavar="CLASSLIST", help="a sheet of its own for each student")
    to_draft = commands.add_parser("draft", help="put cells for new exercises into the source notebook of a set")
    to_draft.add_argument("set", help="ex01, ex02, …")
    to_grade = commands.add_parser("grade", help="run the notebooks that students handed in, and write grades.csv")
    to_grade.add_argument("set", help="ex01, ex02, …")
    to_grade.add_argument("submissions", type=Path, help="a folder, or the zip of a learning platform")
    to_grade.add_argument("-o", "--out", type=Path, default=Path("grades"), help="output folder (default: grades)")
    to_grade.add_argument("--seed", type=int, help="seed of an earlier run, from its log.json, for the same inputs")
    to_grade.add_argument("--no-sandbox", action="store_true", help="run student code as you, without isolation")
    to_grade.add_argument("--jobs", type=int, help="how many notebooks to run at a time (default: all cores)")
    to_grade.add_argument("--student", metavar="NAME", help="grade only this student, again")
    to_grade.add_argument("--accept", action="store_true", help="change the marks of notebooks that are as before")
    to_grade.add_argument("--deadline", type=moment, help="2026-11-20 or 2026-11-20T18:00; reports who is late")
    to_grade.add_argument("--release", type=Path, metavar="FILE", help="what release --variants wrote for the grader")
    to_grade.add_argument("--scheduler", metavar="ADDRESS", help="run the notebooks on a Dask cluster, tcp://host:8786")
    to_mark = commands.add_parser("mark", help="set marks by hand; grade keeps them")
    to_mark.add_argument("grades", type=Path, help="the folder that grade wrote")
    to_mark.add_argument("student", nargs="?", help="a name in totals.csv")
    to_mark.add_argument("exercise", nargs="?", help="the name of the exercise, or all")
    to_mark.add_argument("points", nargs="?", help="from 0 to the maximum of the exercise")
    to_mark.add_argument("--reason", help="a sentence; the student reads it")
    to_mark.add_argument("--file", type=Path, help="many marks: a CSV file with student,exercise,points,reason")
    to_hand_back = commands.add_parser("handback", help="make the files that a learning platform takes back")
    to_hand_back.add_argument("grades", type=Path, help="the folder that grade wrote")
    to_hand_back.add_argument("--to", required=True, choices=["moodle", "canvas", "nbgrader"], help="the platform")
    to_hand_back.add_argument("--gradebook", type=Path, help="the CSV file of the platform, to put the points into")
    to_hand_back.add_argument("--column", help="the column for the points, if the name of the set is not in it")
    to_hand_back.add_argument("--scale", action="store_true", help="convert the points to the platform's maximum")
    to_look = commands.add_parser("overview", help="write a page on what the class has not understood, without names")
    to_look.add_argument("grades", type=Path, nargs="+", help="folders that grade wrote, of one or more sheets")
    to_look.add_argument("-o", "--out", type=Path, default=Path("overview.html"), help="default: overview.html")
    to_look.add_argument(
        "--gradebook", type=Path, action="append", help="a platform's CSV file, to count who is missing"
    )
    to_look.add_argument("--column", help="the gradebook's column for the points, if the name of the set is not in it")
    to_look.add_argument("--book", help="address or folder of the built book, for links (default: the one built here)")
    options = parser.parse_args(arguments)
    wanted = options.sets if options.command == "release" else [options.set] if "set" in options else []
    for name in wanted:
        if name not in checks.SETS:
            parser.error(f"there is no set {name!r}; the sets are {', '.join(checks.SETS)}")
    if options.command == "release" and options.variants and (len(wanted) != 1 or options.check or options.nbgrader):
        parser.error("--variants needs the name of one set, and goes with neither --check nor --nbgrader")
    if options.command == "mark":
        one = [options.student, options.exercise, options.points, options.reason]
        if any(cell is not None for cell in one) if options.file else None in one:
            parser.error("mark takes a student, an exercise, points and --reason; or only --file, with a row for each")
        options.given = options.file or one
    if options.command == "grade":
        if options.seed is not None and options.seed < 0:
            parser.error(f"--seed must be 0 or more; got {options.seed}")
        if options.jobs is not None and options.jobs < 1:
            parser.error(f"--jobs must be 1 or more; got {options.jobs}. Leave it out for all cores")
    return options


def moment(text: str) -> datetime:
    """A time; of a day alone, its end."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"a deadline is 2026-11-20 or 2026-11-20T18:00; got {text}") from None
    return time.replace(hour=23, minute=59, second=59) if len(text) == len("2026-11-20") else time


def run(options: argparse.Namespace) -> int:
    if options.command == "release" and options.variants:
        from subnorm_classroom.sheets import variants

        return variants.hand_out(options.sets[0], options.variants)
    if options.command == "release":
        return release.release(options.sets or list(checks.SETS), options.check, options.nbgrader)
    if options.command == "draft":
        return release.draft(options.set)
    if options.command == "mark":
        from subnorm_classroom.reports import marks

        return marks.mark(options.grades, options.given)
    if options.command == "handback":
        from subnorm_classroom.reports import handback

        return handback.hand_back(options.grades, options.to, options.gradebook, options.column, options.scale)
    if options.command == "overview":
        from subnorm_classroom.reports import overview

        return overview.overview(
            options.grades, options.out, options.gradebook or [], options.column, options.book
        )  # fmt: skip
    from subnorm_classroom.grading import grade

    return grade.grade(
        options.set, options.submissions, options.out, options.seed, not options.no_sandbox, options.jobs,
        options.student, options.accept, options.deadline, options.release, options.scheduler,
    )  # fmt: skip


def stop(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # output redirected on Windows may use a code page without "…"
    signal.signal(signal.SIGTERM, stop)  # a batch system that ends a job
    sys.exit(main())
