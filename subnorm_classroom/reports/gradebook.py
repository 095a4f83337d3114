"""The gradebook file of a learning platform: find each student's row, and change the cells with the points.

Every other byte stays as the platform wrote it: BOM, columns, order, quotes, separators, line ends. A student is found
by the platform's own number, and the name has to agree. Nobody is found by the name alone.

- Moodle: the offline grading worksheet (`mod/assign/gradingtable.php`, read back by
  `mod/assign/feedback/offline/importgradeslib.php`)
- Canvas: the exported gradebook (`lib/gradebook_exporter.rb`, read back by `lib/gradebook_importer.rb`)
- nbgrader: ``nbgrader export`` (`nbgrader/plugins/export.py`)
"""

import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from subnorm_classroom.errors import Refusal
from subnorm_classroom.grading.layouts import CANVAS, MOODLE
from subnorm_classroom.reports.records import Record


class UnmatchedStudent(Exception):
    """A student's result cannot be handed back; the message says why."""


@dataclass
class Cell:
    """A cell: its place in the text, and its value without quotes."""

    start: int
    end: int
    value: str


class Table:
    """A CSV file whose cells can be replaced one by one; all other characters stay.

    Args:
        path: the file.
        quoted: whether a quote begins a cell that may hold separators.
    """

    def __init__(self, path: Path, quoted: bool = True) -> None:
        try:
            data = path.read_bytes()
        except OSError as error:
            raise Refusal(
                f"the gradebook {path} cannot be read: {error.strerror}. Give the path of that file"
            ) from error
        if data.startswith(b"PK"):
            raise Refusal(f"{path} is a spreadsheet or a zip; the gradebook must be the CSV file of the platform")
        try:
            self.text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise Refusal(f"{path} is not in UTF-8; download it again, and do not open it in a spreadsheet") from error
        self.path, self.edits = path, dict[tuple[int, int], str]()
        first = re.sub(r'"[^"]*"', "", self.text.split("\n")[0])
        self.separator = max(",;\t", key=first.count)
        self.rows = list(self.scanned(quoted))
        if len(self.rows) < 2:
            raise Refusal(f"{path} has no row below its header; download it again")
        self.header = [cell.value for cell in self.rows[0]]

    def scanned(self, quoted: bool) -> list[list[Cell]]:
        content = rf"[^{self.separator}\r\n]*"
        if quoted:
            content = rf'"(?:[^"]|"")*"|(?!"){content}'
        cell = re.compile(rf"({content})({self.separator}|\r?\n|\r|\Z)")
        rows: list[list[Cell]] = [[]]
        at = int(self.text.startswith("\ufeff"))
        while True:
            found = cell.match(self.text, at)
            if not found:
                line = self.text.count("\n", 0, at) + 1
                raise Refusal(f"line {line} of {self.path} is damaged: a quote is not closed. Download the file again")
            value = found[1]
            if quoted and value.startswith('"'):
                value = value[1:-1].replace('""', '"')
            rows[-1].append(Cell(found.start(1), found.end(1), value))
            at = found.end()
            if found[2] != self.separator:
                if at == len(self.text):
                    return [row for row in rows if len(row) > 1 or row[0].value]
                rows.append([])

    def column(self, name: str) -> int:
        """The number of the one column of that name."""
        found = [number for number, title in enumerate(self.header) if title == name]
        if len(found) != 1:
            many = "no" if not found else "more than one"
            raise Refusal(f"{self.path} has {many} column {name!r}; its columns are {', '.join(self.header)}")
        return found[0]

    def value(self, row: int, column: int) -> str:
        return self.rows[row][column].value

    def put(self, row: int, column: int, value: str) -> None:
        """Replace a cell; the new one is quoted if the old one was, or if it has to be."""
        cell = self.rows[row][column]
        quote = '"' if self.text[cell.start : cell.start + 1] == '"' or self.separator in value else ""
        self.edits[cell.start, cell.end] = f"{quote}{value}{quote}"

    def edited(self) -> str:
        """The text with all replaced cells."""
        text = self.text
        for (start, end), value in sorted(self.edits.items(), reverse=True):
            text = text[:start] + value + text[end:]
        return text


class Gradebook:
    """What the three platforms have in common.

    Args:
        table: the file.
        set_name: the name of the sheet.
        column: title of the column for the points; None for the usual one.
    """

    table: Table
    points: int  # the column for the points

    def find(self, record: Record) -> int:
        """The row of a student; UnmatchedStudent if there is none, or more than one."""
        raise NotImplementedError

    def students(self) -> list[int]:
        """The rows of all students who may hand in."""
        raise NotImplementedError

    def maximum(self, row: int) -> str:
        """The cell with the platform's maximum."""
        raise NotImplementedError

    def closed(self, row: int) -> str:
        """Why the platform would not take points there; empty if it would."""
        return ""

    def put(self, row: int, points: float) -> None:
        self.table.put(row, self.points, like(points, self.maximum(row)))

    def edited(self) -> str:
        return self.table.edited()

    def complete(self) -> None:
        """Refuse a file in which a row has more or fewer cells than the header."""
        for row in self.table.rows:
            if len(row) != len(self.table.header):
                line = self.table.text.count("\n", 0, row[0].start) + 1
                wanted = f"{len(row)} cells, but the header has {len(self.table.header)}"
                raise Refusal(f"line {line} of {self.table.path} has {wanted}. Download the file again")

    def one_row(self, rows: list[int]) -> int:
        return one_row(self.table, rows)


class Moodle(Gradebook):
    """The offline grading worksheet. Titles are translated, except that the maximum is always right of the grade."""

    def __init__(self, path: Path, set_name: str, column: str | None) -> None:
        self.table = Table(path)
        self.complete()
        if not all(re.fullmatch(r"\D*\d+", row[0].value) for row in self.table.rows[1:]):
            raise Refusal(f"{path} is not Moodle's grading worksheet: its first column has no participants' numbers")
        if column is None and "Grade" not in self.table.header:
            titles = ", ".join(self.table.header)
            raise Refusal(f"{path} is not in English: name the column of the grade with --column, one of {titles}")
        self.points = self.table.column(column or "Grade")
        if self.points + 1 == len(self.table.header) or as_number(self.maximum(1)) is None:
            raise Refusal(f"right of the column {self.table.header[self.points]!r} in {path} there must be the maximum")

    def find(self, record: Record) -> int:
        return moodle_row(self.table, top(record))

    def students(self) -> list[int]:
        return list(range(1, len(self.table.rows)))

    def maximum(self, row: int) -> str:
        return self.table.value(row, self.points + 1)

    def closed(self, row: int) -> str:
        locked = "Grade can be changed"
        if locked in self.table.header and self.table.value(row, self.table.column(locked)) == "No":
            return "Moodle says that this grade cannot be changed"
        return ""


def moodle_row(table: Table, name: str) -> int:
    """The row of the student whose name Moodle gave to a file or folder, in a grading worksheet."""
    found = MOODLE.match(name)
    if not found:
        raise UnmatchedStudent("the submission has no name of Moodle's")
    who, participant = found["who"].rsplit("_", 1)
    numbers = {row: re.sub(r"\D", "", table.value(row, 0)) for row in range(1, len(table.rows))}
    row = one_row(table, [row for row, number in numbers.items() if number and int(number) == int(participant)])
    shown = {letters(table.value(row, 1)), letters(re.sub(r"\d", "", table.value(row, 0)))}
    if letters(who) not in shown:
        raise UnmatchedStudent(f"participant {participant} is {table.value(row, 1)} in {table.path.name}; a team?")
    return row


def one_row(table: Table, rows: list[int]) -> int:
    if len(rows) != 1:
        raise UnmatchedStudent(f"{'no row' if not rows else f'{len(rows)} rows'} in {table.path.name}")
    return rows[0]


class Canvas(Gradebook):
    """The exported gradebook. The points possible are in the second or third row."""

    def __init__(self, path: Path, set_name: str, column: str | None) -> None:
        self.table = Table(path)
        self.complete()
        heads = [row for row in (1, 2) if row < len(self.table.rows) and self.first(row) == "Points Possible"]
        if "ID" not in self.table.header or not heads:
            raise Refusal(f"{path} is not a gradebook of Canvas: it must have a column ID and a row Points Possible")
        self.head, self.ids = heads[0], self.table.column("ID")
        titles = {}
        for at, title in enumerate(self.table.header):
            found = re.fullmatch(r"(.*)\s\((\d+)\)", title)
            if found and "read only" not in self.table.value(self.head, at):
                titles[at] = (title, found[1], found[2])
        word = re.compile(rf"(?<![A-Za-z0-9]){re.escape(set_name)}(?![A-Za-z0-9])", re.IGNORECASE)
        fits = [at for at, names in titles.items() if (column in names if column else word.search(names[1]))]
        if len(fits) != 1:
            known = ", ".join(title for title, *_ in titles.values()) or "none"
            which = f"called {column}" if column else f"with {set_name} in its title"
            raise Refusal(f"{path} must have one assignment {which}; name it with --column: {known}")
        self.points = fits[0]

    def first(self, row: int) -> str:
        return self.table.value(row, 0).strip()

    def find(self, record: Record) -> int:
        found = CANVAS.match(top(record))
        if not found:
            raise UnmatchedStudent("the submission has no name of Canvas's")
        rows = range(self.head + 1, len(self.table.rows))
        row = self.one_row([row for row in rows if self.table.value(row, self.ids).strip() == found["id"]])
        if self.shown(row) != letters(found["who"]):
            name = "".join(self.table.value(row, at) for at in range(self.ids))
            raise UnmatchedStudent(f"user {found['id']} is {name} in {self.table.path.name}")
        return row

    def shown(self, row: int) -> str:
        """The letters of a name: of one column, or of last and first name."""
        return letters("".join(self.table.value(row, at) for at in range(self.ids)))

    def students(self) -> list[int]:
        rows = range(self.head + 1, len(self.table.rows))
        own = "studenttest"  # Canvas's own student, with whom teachers try things out
        return [row for row in rows if not self.closed(row) and self.shown(row) != own]

    def maximum(self, row: int) -> str:
        return self.table.value(self.head, self.points)

    def closed(self, row: int) -> str:
        state = self.table.value(row, self.points).strip().upper()
        return f"Canvas says {state}" if state in ("EX", "EXCUSED", "N/A") else ""

    def edited(self) -> str:
        return super().edited().removeprefix("\ufeff")  # the import would take the BOM for a part of the first title


class Nbgrader(Gradebook):
    """The CSV export. It has no quotes, so a comma in a name adds a cell: such a row belongs to nobody."""

    def __init__(self, path: Path, set_name: str, column: str | None) -> None:
        self.table, self.name = Table(path, quoted=False), set_name
        columns = ("assignment", "student_id", "raw_score", "late_submission_penalty", "score", "max_score")
        self.at = {name: self.table.column(name) for name in columns}
        self.points = self.table.column(column) if column else self.at["raw_score"]

    def find(self, record: Record) -> int:
        parts = PurePosixPath(first_name(record)).parts
        if len(parts) != 3:
            raise UnmatchedStudent("the submission is not in a folder of nbgrader: student/assignment/notebook")
        return self.one_row(
            [
                k
                for k, row in enumerate(self.table.rows)
                if len(row) == len(self.table.header)
                and (row[self.at["student_id"]].value, row[self.at["assignment"]].value) == parts[:2]
            ]
        )

    def students(self) -> list[int]:
        rows = enumerate(self.table.rows)
        return [
            k for k, row in rows if len(row) == len(self.table.header) and row[self.at["assignment"]].value == self.name
        ]

    def maximum(self, row: int) -> str:
        return self.table.value(row, self.at["max_score"])

    def put(self, row: int, points: float) -> None:
        """Write the points, and nbgrader's score: the points less the penalty that it has given."""
        super().put(row, points)
        if self.points == self.at["raw_score"]:
            penalty = as_number(self.table.value(row, self.at["late_submission_penalty"])) or 0
            self.table.put(row, self.at["score"], like(max(0, points - penalty), self.maximum(row)))


PLATFORMS: dict[str, type[Moodle | Canvas | Nbgrader]] = {"moodle": Moodle, "canvas": Canvas, "nbgrader": Nbgrader}


def first_name(record: Record) -> str:
    """The platform's name of the graded notebook, or of the first thing that was handed in."""
    return str((record.get("handed_in") or [""])[0])


def top(record: Record) -> str:
    """The first part of that name, which the platform chose; what follows is the student's."""
    return first_name(record).split("/")[0]


def letters(name: str) -> str:
    """The letters and digits of a name: each platform drops other characters in its own way."""
    return "".join(c for c in unicodedata.normalize("NFKC", name).casefold() if c.isalnum())


def as_number(cell: str) -> float | None:
    """A number with a decimal point or comma; None for anything else."""
    return float(cell.replace(",", ".")) if re.fullmatch(r"\s*\d+([.,]\d+)?\s*", cell) else None


def like(points: float, cell: str) -> str:
    """Points as text, with the decimal separator and at least the decimals of a cell."""
    decimals = len(re.split(r"[.,]", cell.strip())[1]) if re.search("[.,]", cell) else 0
    text = f"{points:.2f}".rstrip("0")
    whole, part = text.split(".")
    part = part.ljust(decimals, "0")
    separator = "," if "," in cell else "."
    return f"{whole}{separator}{part}" if part else whole
