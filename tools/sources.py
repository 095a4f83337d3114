"""Print the address of every thread that a mistake of the exercises cites: the scheduled check of links reads them."""

from subnorm.checks import SETS


def main() -> None:
    cited = {mistake.source for exercises in SETS.values() for exercise in exercises for mistake in exercise.mistakes}
    print(*sorted(cited - {""}), sep="\n")


if __name__ == "__main__":
    main()
