"""The grader's self-test, with answers of ours in place of a sandbox's."""

import pytest

from subnorm_classroom.errors import Refusal
from subnorm_classroom.grading import canary
from subnorm_classroom.grading.running import Work
from subnorm_lab.checks.collect import Outcome


def checked(monkeypatch, in_torch, to_wrong=None):
    """The self-test, where the given answers come back: text, or what a function makes of its input."""

    def run(box, cells, questions):
        wrong = "return 0.5" in cells[0].source
        answers = {}
        for asked in questions:
            answer = in_torch if asked.name == canary.IN_TORCH.name else (to_wrong or half) if wrong else twice
            made = answer if isinstance(answer, str) else [[Outcome(answer(*case.args)) for case in asked.cases]]
            answers[asked.name] = made
        return Work(answers)

    monkeypatch.setattr(canary, "run_notebook", run)
    canary.check(None, [], 1, None, in_torch=in_torch is not None)


def half(x):
    return 0.5


def twice(x):
    return 2 * x


@pytest.mark.parametrize("in_torch", [None, twice])
def test_right_answers_start_the_grading(in_torch, monkeypatch):
    checked(monkeypatch, in_torch)


@pytest.mark.parametrize(
    ("answer", "found"), [("timeout", r"timeout \(it ran out of time"), (half, r"shape \(on a float16 batch")]
)
def test_no_answer_or_a_wrong_one_in_pytorch_stops_it(answer, found, monkeypatch):
    with pytest.raises(Refusal, match=f"the solution of canary_in_pytorch was judged {found}"):
        checked(monkeypatch, answer)


@pytest.mark.parametrize(
    ("answer", "found"), [("killed", "nothing came back of an answer to canary: killed"), (twice, "was judged right")]
)
def test_a_wrong_answer_must_come_back_and_be_judged_wrong(answer, found, monkeypatch):
    with pytest.raises(Refusal, match=found):
        checked(monkeypatch, None, to_wrong=answer)
