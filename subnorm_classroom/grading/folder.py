"""The folder of the grades: the log of the run, a record of each student, and records that wait for the teacher."""

import shutil
from pathlib import Path
from typing import Any

from subnorm_classroom.errors import Refusal
from subnorm_classroom.files import as_json, read_json, write, writes_to
from subnorm_classroom.reports.records import Record, is_record


class Folder:
    """A folder of grades.

    Args:
        path: the folder.
        set_name: the sheet that is graded.
        names: the file name of each student, by the student's name.

    Raises:
        Refusal: the folder holds the grades of another set.
    """

    def __init__(self, path: Path, set_name: str, names: dict[str, str]) -> None:
        self.path, self.names = path, names
        self.log = read_json(path / "log.json")
        if self.log.get("set", set_name) != set_name:
            raise Refusal(f"{path} holds the grades of {self.log['set']}; choose another folder: -o {path / set_name}")

    def place(self, student: str) -> Path:
        return self.path / "students" / f"{self.names[student]}.json"

    def waiting_place(self, student: str) -> Path:
        return self.path / "new" / f"{self.names[student]}.json"

    def accept_waiting(self, records: list[Record]) -> None:
        """Take records that waited in place of the old ones."""
        for record in records:
            write(self.place(record["student"]), as_json(record))
        shutil.rmtree(self.path / "new", ignore_errors=True)

    def remove_others(self) -> list[str]:
        """Remove an earlier run's results of students who are not in this one; return their names."""
        gone = []
        kept = {f"{name}.json" for name in self.names.values()}
        for path in sorted((self.path / "students").glob("*.json")):
            record = read_json(path) if path.name not in kept else {}
            if is_record(record):
                with writes_to(path):
                    for kind in ("md", "html"):
                        (self.path / "feedback" / f"{path.name.removesuffix('.json')}.{kind}").unlink(missing_ok=True)
                    path.unlink()
                gone.append(str(record["student"]))
        return gone

    def begin(self, settings: dict[str, Any]) -> None:
        """Write the log of a run that is not finished, unless an earlier run was."""
        if not self.log.get("finished"):
            write(self.path / "log.json", as_json({**settings, "finished": False, "students": {}}))

    def finish(self, settings: dict[str, Any], records: list[Record]) -> None:
        """Write the log of a run that is finished."""
        kept = ("file", "sha256", "problem", "flags", "late")
        students = {record["student"]: {key: record[key] for key in kept} for record in records}
        write(self.path / "log.json", as_json({**settings, "finished": True, "students": students}))
