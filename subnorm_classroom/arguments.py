"""The types of arguments that more than one command takes."""

import argparse
from collections.abc import Callable
from datetime import datetime

from subnorm_lab import checks


def set_name(text: str) -> str:
    """The name of a set of exercises."""
    if text not in checks.SETS:
        raise argparse.ArgumentTypeError(f"there is no set {text!r}; the sets are {', '.join(checks.SETS)}")
    return text


def moment(text: str) -> datetime:
    """A time; of a day alone, its end."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"a deadline is 2026-11-20 or 2026-11-20T18:00; got {text}") from None
    return time.replace(hour=23, minute=59, second=59) if len(text) == len("2026-11-20") else time


def at_least(least: int) -> Callable[[str], int]:
    """The type of a whole number that is not below a given one."""

    def number(text: str) -> int:
        if not text.lstrip("-").isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"must be a whole number, {least} or more; got {text}")
        return int(text)

    return number
