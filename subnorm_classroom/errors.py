"""The errors of a command, and its exit status."""

import sys
from collections.abc import Callable


class Refusal(Exception):
    """A command cannot do what it was asked; the message says why, and how to fix it."""


def exit_status(command: str, action: Callable[[], int]) -> int:
    """The status of a command; every error that a teacher can fix is a sentence on standard error, and gives 1.

    Ctrl-C and a signal to end give 130.
    """
    try:
        return action()
    except Refusal as error:
        print(f"{command}: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        advice = "Make room there or allow yourself to use it, then run the same command again"
        print(f"{command}: {where}{error.strerror or error}. {advice}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\n{command}: stopped. Run the same command again to continue.", file=sys.stderr)
        return 130
