"""What decides the marks of a run, besides the notebooks: the next run of the same class uses it again."""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from subnorm_classroom.errors import Refusal
from subnorm_classroom.files import digest, read_json
from subnorm_classroom.grading.folder import Folder
from subnorm_classroom.grading.sandbox import Limits
from subnorm_classroom.sheets.variants import Release, read_release


@dataclass(frozen=True)
class Setting:
    """The setting of a run.

    Args:
        set_name: the sheet: "ex02".
        seed: draws the inputs; secret.
        isolated: whether the submissions run in a sandbox.
        versions: the version of everything that decides a mark.
        limits: the limits of each submission.
        deadline: the time after which a hand-in is late; None for no deadline.
        release: the sheets of the students' own; None if all have the same.
    """

    set_name: str
    seed: int
    isolated: bool
    versions: dict[str, str]
    limits: Limits
    deadline: datetime | None
    release: Release | None

    def key(self, sha256: str, variants: Sequence[str]) -> str:
        """The digest of everything that decides the marks of a notebook; with another one, it is graded again."""
        decides = [self.set_name, self.seed, self.versions, self.isolated, str(self.limits), sha256, list(variants)]
        return digest(json.dumps(decides))

    def as_log(self) -> dict[str, Any]:
        """What the next run needs."""
        log = {"set": self.set_name, "seed": self.seed, "isolated": self.isolated, "versions": self.versions}
        log |= {"deadline": self.deadline.isoformat()} if self.deadline else {}
        return log | ({"release": self.release.as_dict()} if self.release else {})


def choose_seed(folder: Folder, given: int | None) -> int:
    """The given seed, or else that of an earlier run, or else a new one.

    Raises:
        Refusal: there are grades, and their seed is lost.
    """
    kept = folder.log.get("seed")
    if given is not None:
        return given
    if (folder.path / "log.json").exists() and (type(kept) is not int or kept < 0):
        raise Refusal(
            f"{folder.path / 'log.json'} is damaged, and the seed of its grades is lost. If you have the seed, pass it "
            "with --seed. If not, remove the file to draw a new seed and grade everybody again"
        )
    return secrets.randbits(64) if kept is None else int(kept)


def choose_deadline(folder: Folder, given: datetime | None) -> datetime | None:
    """The given deadline, or else that of an earlier run."""
    if given:
        return given if given.tzinfo else given.astimezone()
    return datetime.fromisoformat(folder.log["deadline"]) if folder.log.get("deadline") else None


def choose_release(folder: Folder, set_name: str, given: Path | None) -> Release | None:
    """The release in the given file, or else that of an earlier run; None if all students have the same sheet."""
    if given:
        return read_release(read_json(given), set_name, given)
    kept = folder.log.get("release")
    return read_release(kept, set_name, folder.path / "log.json") if kept else None
