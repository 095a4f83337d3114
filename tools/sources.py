"""Print the address of every public thread that the exercises' mistakes cite, for the scheduled link check."""

from subnorm_lab.checks import SETS


def main() -> None:
    cited = {mistake.source for exercises in SETS.values() for exercise in exercises for mistake in exercise.mistakes}
    print(*sorted(cited - {""}), sep="\n")


if __name__ == "__main__":
    main()
