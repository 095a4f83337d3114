"""Records of measurements that take minutes: JSON files in ``records/``, with the command that repeats each.

The command also stores a digest of everything else in the record. A number that was edited by hand no longer fits it,
and `read` refuses the record.

To add one, write a module with ``take()``, which measures and returns a dictionary that begins with ``origin("python
-m subnorm_lab.experiments.<name>")``, and ``recorded()``, which reads it; run that command; list the module on
``book/api/experiments.md``, and let a cell of a notebook repeat a small part. ``parity.py`` is a short one. Before you
write "it does not learn", try a longer run and another learning rate.
"""

import hashlib
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from subnorm.provenance import today, versions
from subnorm_lab import _files

Record = dict[str, Any]


def file(name: str) -> Path:
    """The path of the record of this name."""
    return Path(str(files("subnorm_lab.experiments"))) / "records" / f"{name}.json"


def origin(command: str) -> Record:
    """The first entries of a record: the day, the command that repeats it, and the versions."""
    return {"date": today(), "command": command, "versions": versions()}


def checksum(record: Record) -> str:
    """A checksum of all entries, in whatever order they are."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]


def read(path: Path) -> Record:
    """A record as stored, with lists for arrays.

    Raises:
        ValueError: the record is not as its command wrote it.
    """
    record: Record = json.loads(path.read_text(encoding="utf-8"))
    if record.pop("digest", None) != checksum(record):
        rule = f"{path.name} is not as its command wrote it"
        raise ValueError(f"{rule}. Do not edit a record: measure it again with `{record.get('command')}`.")
    return record


def write(path: Path, record: Record) -> None:
    """Write a record atomically, with its digest: an interruption leaves the previous one."""
    record = json.loads(json.dumps(record))  # as it will be read: keys are texts, and tuples are lists
    _files.write(path, json.dumps({**record, "digest": checksum(record)}, indent=1) + "\n")
