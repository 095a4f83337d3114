"""Make a wrong answer from the text of the right one, by replacing pieces."""

import functools
import linecache
from collections.abc import Callable
from typing import Any


class Edited:
    """A function with pieces of its text replaced. It is compiled at the first call, because most are never called.

    Args:
        function: a function at the top level of its file.
        changes: each `"old -> new"`, applied in order; `"old ->"` deletes the piece.

    Raises:
        ValueError: a piece does not occur exactly once in the function's text from ``def`` on.
    """

    def __init__(self, function: Callable[..., Any], *changes: str) -> None:
        self.original, self.changes = function, changes
        self.text = text_of(function)
        self.__kwdefaults__ = function.__kwdefaults__
        for change in changes:
            old, _, new = (piece.strip() for piece in change.partition("->"))
            if (times := self.text.count(old) if old else 0) != 1:
                raise ValueError(f"{old!r} occurs {times} times in {function.__name__}, not once: {change!r}")
            self.text = self.text.replace(old, new)

    @functools.cached_property
    def function(self) -> Callable[..., Any]:
        made: dict[str, Any] = {}
        code = compile(self.text, f"<{self.original.__name__}: {'; '.join(self.changes)}>", "exec", dont_inherit=True)
        exec(code, self.original.__globals__, made)
        return made[self.original.__name__]

    def __call__(self, *args: Any, **parameter: Any) -> Any:
        return self.function(*args, **parameter)


@functools.cache
def text_of(function: Callable[..., Any]) -> str:
    """The lines of a function from its ``def`` on. inspect.getsource, which parses the file, takes far longer."""
    lines = linecache.getlines(function.__code__.co_filename, function.__globals__)
    start = next(k for k, line in enumerate(lines) if line.startswith(f"def {function.__name__}("))
    ends = (k for k, line in enumerate(lines[start + 1 :], start + 1) if line[0] not in " \n)")
    return "".join(lines[start : next(ends, len(lines))])
