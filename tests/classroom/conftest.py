"""What several tests of the classroom set up."""

import pytest
from classroom.hand_ins import PATIENT, SET
from helpers.parts import need

from subnorm_classroom.grading import judging, versions
from subnorm_classroom.grading.sandbox import Sandbox
from subnorm_lab.checks import SETS


@pytest.fixture(scope="module")
def box():
    """A sandbox for one file of tests."""
    need("bwrap")
    with Sandbox(limits=PATIENT) as box:
        yield box


@pytest.fixture
def quick_set(monkeypatch):
    """A set of two exercises; its version stays the same, though somebody may be editing the code now."""
    need("bwrap")
    monkeypatch.setitem(SETS, "quick", SET)
    monkeypatch.setattr(versions, "code_digest", lambda: "the code")


@pytest.fixture
def judged(monkeypatch):
    """The notebooks that are judged and not kept from an earlier run; it grows."""
    seen, real = [], judging.judge
    monkeypatch.setattr(judging, "judge", lambda *asked: seen.append(asked) or real(*asked))
    return seen
