"""A term of a synthetic class, from release to hand-back; `python -m tools.term` plays it with more students."""

from collections import Counter

import pytest
from helpers.parts import need

from tools import term


def test_the_class_is_the_same_at_every_call_and_has_its_shares():
    class_ = term.class_of("ex03", 200)
    assert class_ == term.class_of("ex03", 200)
    exercise, mistake, share = term.PLANTED["ex03"]
    found = Counter(student.answers[exercise] for student in class_)
    assert (found[mistake], found["right"]) == (200 * share, 200 * (1 - share - term.OTHERS))
    assert Counter(student.answers["rms_norm"] for student in class_)["right"] == 200 * (1 - term.OTHERS)
    kinds = [(one.absent, one.broken, one.more in term.HOSTILE) for one in class_]
    assert Counter(kinds) == {
        (False,) * 3: 194,
        (True, False, False): 2,
        (False, True, False): 2,
        (False, False, True): 2,
    }
    assert sum(one.late for one in class_) == 20
    assert len(term.pairs_of(class_)) == 2
    assert len(term.pairs_of(term.class_of("ex03", 2000))) == 20


@pytest.mark.parametrize("platform", term.PLATFORMS)
def test_what_the_platforms_hand_out_holds_everybody_once(platform, tmp_path):
    from subnorm.classroom.submissions import read_all

    class_ = term.class_of("ex01", 12)
    source, names = term.PLATFORMS[platform][0]("ex01", class_, tmp_path)
    found = {submission.student for submission in read_all(source)}
    assert found == {names[one.number] for one in class_ if not one.absent}


def test_a_term_from_release_to_hand_back(capsys):
    need("bwrap")
    assert term.main(["--students", "10"]) == 0, capsys.readouterr().err
    assert "handback ex04" in capsys.readouterr().out
