"""A record is read as it was written, and an interrupted write leaves the previous record."""

from pathlib import Path

import pytest

from subnorm_lab.experiments import stored


def test_a_record_comes_back_as_it_was_written(tmp_path: Path) -> None:
    path, record = tmp_path / "gap.json", {**stored.origin("python -m gap"), "losses": {"layer": [[0.1, 1e-9]]}}
    stored.write(path, record)
    assert stored.read(path) == record
    assert [file.name for file in tmp_path.iterdir()] == ["gap.json"]


def test_an_interrupted_writing_leaves_the_record_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "gap.json"
    stored.write(path, {"losses": [1.0]})

    write_bytes = Path.write_bytes

    def interrupted(file: Path, content: bytes) -> int:
        write_bytes(file, content[:5])
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_bytes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        stored.write(path, {"losses": [2.0]})
    assert stored.read(path) == {"losses": [1.0]}


def test_every_record_names_its_command_and_its_day() -> None:
    records = sorted(stored.file("any").parent.glob("*.json"))
    assert records
    for path in records:
        assert {"date", "command", "versions"} <= stored.read(path).keys(), path.name


def test_a_number_that_was_edited_by_hand_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "gap.json"
    stored.write(path, {**stored.origin("python -m gap"), "losses": {"layer": (0.125, 3.5)}})
    assert stored.read(path)["losses"] == {"layer": [0.125, 3.5]}
    before = path.read_text()
    for edited in (before.replace("3.5", "3.504"), before.replace('"digest"', '"other"')):
        path.write_text(edited)
        with pytest.raises(ValueError, match=r"gap.json is not as its command wrote it.*`python -m gap`"):
            stored.read(path)
