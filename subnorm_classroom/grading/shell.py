"""IPython in the sandbox: the cells of a notebook run as in Jupyter, without a screen, a keyboard and a history."""

import site
import sys
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magics import execution
from traitlets.config import Config


class Shell(InteractiveShell):
    """The shell of one notebook. It differs from Jupyter's in what a machine without a student needs.

    A magic that this machine lacks does nothing, `%timeit` runs its code once, and errors are kept and not shown.
    """

    failed: BaseException | None = None  # the first error of the cell
    system = InteractiveShell.system_raw  # no terminal

    def run(self, source: str, keep: bool = True) -> BaseException | None:
        """Run a cell, and return its error if there is one.

        Args:
            source: the cell.
            keep: whether it gets a number, and its place in `In` and `Out`.
        """
        self.failed = None
        try:
            result = self.run_cell(source, store_history=keep)
        except BaseException as error:
            return error
        return self.failed or result.error_before_exec or result.error_in_exec

    def showtraceback(self, exc_tuple: Any = None, *args: Any, **kwargs: Any) -> None:
        sys.last_type, sys.last_value, sys.last_traceback = exc_tuple or sys.exc_info()  # for %debug
        self.failed = self.failed or sys.last_value

    def showsyntaxerror(self, *args: Any, **kwargs: Any) -> None:
        self.showtraceback()

    def run_line_magic(self, magic_name: str, line: str, _stack_depth: int = 1) -> Any:
        try:
            return super().run_line_magic(magic_name, line, _stack_depth + 1)
        except UsageError:
            return None
        except ImportError:
            if magic_name not in ("load_ext", "reload_ext", "matplotlib", "pylab"):
                raise

    def run_cell_magic(self, magic_name: str, line: str, cell: str) -> Any:
        try:
            return super().run_cell_magic(magic_name, line, cell)
        except UsageError:
            return None

    def enable_matplotlib(self, gui: Any = None) -> tuple[Any, str]:
        """There is no screen: figures are drawn by the backend that the sandbox sets, with or without `%matplotlib`."""
        return gui, "agg"

    def enable_gui(self, gui: Any = None) -> None:
        """There is no window."""

    def ask_exit(self) -> None:
        """The cells after `exit` run, too."""


class OnceTimer(execution.Timer):
    """A timer for `%timeit` that runs the code once, however often it is asked to."""

    def timeit(self, number: int = 1) -> float:
        return number * float(super().timeit(1))

    def repeat(self, repeat: int = 1, number: int = 1) -> list[float]:
        return [self.timeit(number)]


def make_shell() -> Shell:
    """The shell, with the names that Python itself has only if the module `site` has run: `help`, `exit`, …"""
    site.sethelper()
    site.setcopyright()
    site.setquit()
    execution.Timer = OnceTimer  # type: ignore[misc]
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.warn_venv = False
    config.InteractiveShell.xmode = "Minimal"  # IPython formats each traceback, which nobody sees
    return Shell.instance(config=config)
