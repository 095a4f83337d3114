"""A measurement that takes minutes is kept: as a JSON file in ``records/``, with the command that repeats it."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from subnorm.provenance import today, versions

Record = dict[str, Any]


def file(name: str) -> Path:
    """Where the record of this name is kept."""
    return Path(str(files("subnorm.experiments"))) / "records" / f"{name}.json"


def origin(command: str) -> Record:
    """The first entries of a record: the day, the command that measures it again, the versions that it depends on."""
    return {"date": today(), "command": command, "versions": versions()}


def read(path: Path) -> Record:
    """A record as it was written: its arrays are lists."""
    record: Record = json.loads(path.read_text(encoding="utf-8"))
    return record


def write(path: Path, record: Record) -> None:
    """Write a record whole or not at all: an interruption leaves the one before."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8", newline="\n")
    unfinished.replace(path)
