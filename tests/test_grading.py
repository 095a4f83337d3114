"""The measurement of grading: its class, and its arithmetic."""

import pytest

from subnorm.checks import SETS
from subnorm.classroom.cells import cells_of
from tools import grading


@pytest.mark.parametrize("name", ["ex01", "ex02"])
def test_the_class_is_the_same_each_time_and_mixed(name, tmp_path):
    folders = [grading.hand_ins(name, 20, tmp_path / k) for k in "ab"]
    one, two = ([path.read_bytes() for path in sorted(folder.iterdir())] for folder in folders)
    assert one == two
    assert len(set(one)) > 10
    assert 0 < sum(b"raise NotImplementedError" in data for data in one) < 20
    assert all(cells_of(data, name, [ex.name for ex in SETS[name]]) for data in one)


def test_a_number_on_paper_follows_from_those_of_a_hand_in():
    few, many = {"all": 1.0, "client": 0.1, "scheduler": 0.2}, {"all": 3.0, "client": 0.5, "scheduler": 0.4}
    each = grading.slope(few, many, 10)
    assert {key: round(value, 3) for key, value in each.items()} == {"all": 0.2, "client": 0.04, "scheduler": 0.02}
    assert list(grading.on_paper(each)) == [
        "on paper, 100,000 hand-ins: 3.9 hours of CPU on the workers, divided by their cores;",
        "  the client 67 minutes, the scheduler 33;",
        "  so from 4 cores of workers on, the client is what they wait for",
    ]
