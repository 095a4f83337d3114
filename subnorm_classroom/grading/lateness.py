"""When a hand-in came, by what its platform says.

A zip of Moodle or Canvas holds the time at which it was made (github.com/instructure/canvas-lms/issues/2219), so the
times of their files say nothing. These do:

- Canvas marks a late file by its name, by Canvas's own deadline
- nbgrader notes a time beside the notebook, in UTC
- Moodle writes it into the grading worksheet, in the time zone of the teacher's profile
- of a file that no platform made, the time of its last change, which copying may change
"""

import contextlib
import re
import unicodedata
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from subnorm_classroom.errors import Refusal
from subnorm_classroom.grading.archives import File
from subnorm_classroom.grading.layouts import ANONYMOUS, CANVAS, CANVAS_TEXT, MOODLE, of_platform
from subnorm_classroom.reports.gradebook import Table, UnmatchedStudent, moodle_row

COLUMN = "Last modified (submission)"
UNKNOWN = "unknown"  # how the sentence about a hand-in of unknown time begins
NO_TIMES = f"{UNKNOWN}: the download does not say when it was handed in"
MONTHS = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
]  # fmt: skip
HEADER = 4096  # bytes that hold a header: other files are not read further
TIME = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?\s*([AP]M)?", re.IGNORECASE)


def late(handed_in: Sequence[File], deadline: datetime | None, told: Callable[[], datetime | None], noted: str) -> str:
    """How late a hand-in is; empty if it is not late, or there is no deadline; or a sentence that begins "unknown".

    Args:
        handed_in: the files.
        deadline: the time after which they are late, with its time zone.
        told: finds the time in Moodle's worksheet, which has no time zone: it is that of the deadline.
        noted: nbgrader's timestamp.
    """
    tops = {file.path.parts[0] for file in handed_in}
    if any((found := form.match(top)) and found["late"] for form in (CANVAS, CANVAS_TEXT, ANONYMOUS) for top in tops):
        return "marked late by Canvas"
    if deadline is None:
        return ""
    if time := told():
        return after(time.replace(tzinfo=deadline.tzinfo), deadline, "by Moodle's worksheet")
    if any(MOODLE.match(top) for top in tops):
        return NO_TIMES
    if time := utc(noted):
        return after(time, deadline, "by nbgrader's timestamp")
    if any(of_platform(top) for top in tops):
        return ""
    times = [file.time for file in handed_in if file.time and (file.is_notebook or file.is_archive)]
    return after(max(times), deadline, "by the time of the file") if times else ""


def after(time: datetime, deadline: datetime, told: str) -> str:
    if time <= deadline:
        return ""
    minutes = int((time - deadline).total_seconds() // 60)
    days, hours = minutes // (24 * 60), minutes // 60 % 24
    length = f"{days} d {hours} h" if days else f"{hours} h {minutes % 60} min" if hours else f"{minutes} min"
    return f"{length} after the deadline, {told}"


def utc(noted: str) -> datetime | None:
    """The time that nbgrader noted, such as 2015-02-02 15:58:23.948203 UTC."""
    try:
        return datetime.fromisoformat(noted.strip().removesuffix(" UTC")).replace(tzinfo=UTC)
    except ValueError:
        return None


class Worksheets:
    """The grading worksheets of Moodle in a folder, in English. Of two, the later time of a student counts."""

    def __init__(self, folder: Path) -> None:
        self.tables: list[tuple[Table, int]] = []
        for path in sorted(folder.glob("*.csv")):
            with contextlib.suppress(OSError, Refusal):  # another table
                with path.open("rb") as file:
                    known = COLUMN.encode() in file.read(HEADER)
                if known:
                    table = Table(path)
                    self.tables.append((table, table.column(COLUMN)))

    def of(self, handed_in: Sequence[File]) -> datetime | None:
        """When a student's files were handed in; None if no worksheet says so.

        Raises:
            Refusal: a time is in a form that we do not know.
        """
        top = handed_in[0].shown.parts[0]
        times = []
        for table, column in self.tables:
            try:
                cell = table.value(moodle_row(table, top), column)
            except (UnmatchedStudent, IndexError):
                continue
            if cell.strip() not in ("", "-"):
                times.append(moment(cell, table.path))
        return max(times, default=None)


def moment(cell: str, path: Path) -> datetime:
    """A time of Moodle's: "Friday, 20 November 2026, 8:00 PM", or "Friday, November 20, 2026, 20:00"."""
    text = unicodedata.normalize("NFKC", cell)
    clock, months = TIME.search(text), [k for k, name in enumerate(MONTHS, 1) if re.search(rf"\b{name}\b", text)]
    numbers = re.findall(r"\b\d+\b", TIME.sub("", text))
    try:
        (month,) = months
        day, year = sorted(map(int, numbers))
        hour, minute, second, half = clock.groups() if clock else ("", "", "", "")
        hours = int(hour) % 12 + 12 * (half.upper() == "PM") if half else int(hour)
        return datetime(year, month, day, hours, int(minute), int(second or 0))
    except ValueError:
        raise Refusal(
            f"{path} has a time that cannot be read: {cell!r}. Set Moodle's language to English, and download the "
            "grading worksheet again; or move the worksheet away"
        ) from None
