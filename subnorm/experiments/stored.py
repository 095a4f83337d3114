"""Records of measurements that take minutes: JSON files in ``records/``, with the command that repeats each."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from subnorm import _files
from subnorm.provenance import today, versions

Record = dict[str, Any]


def file(name: str) -> Path:
    """The path of the record of this name."""
    return Path(str(files("subnorm.experiments"))) / "records" / f"{name}.json"


def origin(command: str) -> Record:
    """The first entries of a record: the day, the command that repeats it, and the versions."""
    return {"date": today(), "command": command, "versions": versions()}


def read(path: Path) -> Record:
    """A record as stored, with lists for arrays."""
    record: Record = json.loads(path.read_text(encoding="utf-8"))
    return record


def write(path: Path, record: Record) -> None:
    """Write a record atomically: an interruption leaves the previous one."""
    _files.write(path, json.dumps(record, indent=1) + "\n")
