"""The origin of a record: the commit of its code, and one line for the reader."""

import subprocess
from pathlib import Path

import pytest

from subnorm import provenance


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", folder, *who, *words], check=True)


def test_the_commit_is_that_of_the_checkout_that_has_the_file(tmp_path: Path) -> None:
    code = tmp_path / "package" / "code.py"
    code.parent.mkdir()
    code.touch()
    assert provenance.commit(code) is None
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "somebody else's")
    assert provenance.commit(code) is None  # installed inside a checkout, and not of it
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "the code")
    clean = provenance.commit(code)
    assert clean is not None
    assert len(clean) == 40
    (tmp_path / "record.json").touch()
    assert provenance.commit(code, but="record.json") == clean
    assert provenance.commit(code) == f"{clean}-dirty"
    (tmp_path / "record.json").unlink()
    code.write_text("changed", "utf-8")
    assert provenance.commit(code) == f"{clean}-dirty"


@pytest.mark.parametrize(
    ("text", "is_one"),
    [(None, True), ("0123456789" * 4, True), ("0123456789" * 4 + "-dirty", True), ("0123456", False), ("main", False)],
)
def test_a_commit_has_all_its_digits(text: str | None, is_one: bool) -> None:
    assert provenance.is_commit(text) == is_one


@pytest.mark.parametrize(
    ("record", "text"),
    [
        ({"commit": "0123456789" * 4, "load": 0.25}, "2026-11-22, commit 0123456, load 0.2"),
        ({"commit": "0123456789" * 4 + "-dirty", "load": None}, "2026-11-22, commit 0123456 with changes"),
        ({"commit": None, "load": None}, "2026-11-22, version 1.0"),
    ],
)
def test_a_line_says_when_of_what_and_how_busy(record: dict[str, object], text: str) -> None:
    assert provenance.made({"date": "2026-11-22", **record}, "1.0") == text
