"""How a notebook is run again without what ended its process; a list of messages takes the place of the sandbox."""

from dataclasses import replace

import numpy as np
import pytest
from classroom.hand_ins import SET

from subnorm_classroom.grading import running
from subnorm_classroom.grading.assignments import draw
from subnorm_classroom.grading.cells import Cell
from subnorm_classroom.grading.running import Work, hear
from subnorm_classroom.grading.sandbox import Ending, Limits
from subnorm_classroom.grading.wire import pack_outcome
from subnorm_lab.checks.collect import Outcome

ONE, TWO = (ex.name for ex in SET)
QUESTIONS = [draw(ex, 1).question for ex in SET]
CASES = {asked.name: asked.cases for asked in QUESTIONS}
CELLS = [Cell(2, ("setup",), "a"), Cell(4, (), "b"), Cell(5, (), "c")]


def answer(name):
    return {"answer": name, "attempts": [[pack_outcome(Outcome(0.5))] * len(CASES[name])]}


class Box:
    """Each run gives the next messages and ends as told; the last one again and again."""

    def __init__(self, *runs, **limits):
        self.runs, self.limits, self.jobs = runs, replace(Limits(), **limits), []

    def run(self, job, listen, until):
        messages, ending = self.runs[min(len(self.jobs), len(self.runs) - 1)]
        self.jobs.append(job)
        for message in messages:
            listen(message)
        return ending

    def works(self, cells=CELLS, questions=QUESTIONS):
        return running.run_notebook(self, cells, questions)

    def asked(self):
        return [[name for name, *_ in job["questions"]] for job in self.jobs]

    def ran(self):
        return [[number for number, *_ in job["cells"]] for job in self.jobs]


END = Ending("end", "end")


def test_a_notebook_that_ends_runs_once():
    box = Box([[answer(ONE), answer(TWO)], END])
    work = box.works()
    assert [outcome.value for outcome in work.answers[ONE][0]] == [0.5] * len(CASES[ONE])
    assert (set(work.answers), work.errors, work.lost) == ({ONE, TWO}, {}, {})
    assert box.jobs[0]["cells"] == [[2, ("setup",), "a"], [4, (), "b"], [5, (), "c"]]
    assert (box.asked(), box.jobs[0]["torch"]) == ([[ONE, TWO]], False)


def test_a_cell_that_ends_the_process_is_left_out():
    box = Box([[], Ending("memory", "cell", 4)], [[answer(ONE), answer(TWO)], END])
    work = box.works()
    assert (work.lost, box.ran()) == ({4: "memory"}, [[2, 4, 5], [2, 5]])
    assert isinstance(work.answers[TWO], list)


def test_a_question_that_ends_the_process_is_not_asked_again():
    box = Box([[], Ending("timeout", "question", ONE)], [[answer(TWO)], END])
    work = box.works()
    assert (work.answers[ONE], box.asked()) == ("timeout", [[ONE, TWO], [TWO]])
    assert isinstance(work.answers[TWO], list)


def test_when_all_is_answered_nothing_runs_again():
    box = Box([[answer(ONE)], Ending("timeout", "question", TWO)])
    assert box.works().answers[TWO] == "timeout"
    assert len(box.jobs) == 1


@pytest.mark.parametrize(
    "ending",
    [Ending("killed", "start"), Ending("killed", "cell", "4"), Ending("killed", "question", "other"),
     Ending("killed", "question", 3), Ending("end", "end")],
)  # fmt: skip
def test_an_end_that_no_cell_or_question_explains_is_the_last(ending):
    box = Box([[], ending])
    assert box.works().answers == {ONE: "killed", TWO: "killed"}
    assert (len(box.jobs), box.works().lost) == (1, {})


def test_it_is_run_again_a_number_of_times():
    box = Box([[], Ending("killed", "cell", 4)], restarts=3)
    assert box.works().answers == {ONE: "killed", TWO: "killed"}
    assert len(box.jobs) == 4


def test_it_is_not_run_again_when_the_time_is_over():
    box = Box([[], Ending("timeout", "cell", 4)], total=-1)
    assert box.works().answers == {ONE: "timeout", TWO: "timeout"}
    assert len(box.jobs) == 1


@pytest.mark.parametrize(("source", "torch"), [("import torch", True), ("torches = 1", False)])
def test_pytorch_has_room_where_a_cell_names_it(source, torch):
    box = Box([[], END])
    box.works([Cell(1, (), source)])
    assert box.jobs[0]["torch"] is torch


def test_pytorch_has_room_for_a_module():
    box = Box([[], END])
    box.works([], [replace(QUESTIONS[0], way="module"), QUESTIONS[1]])
    assert box.jobs[0]["torch"] is True


def test_each_exercise_and_each_seed_has_inputs_of_its_own():
    one, again, other = (draw(SET[1], seed).cases[0].args[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert not np.allclose(one, other)
    assert not np.allclose(one, draw(replace(SET[1], name="a square"), 1).cases[0].args[0])


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        ([{"none": ONE, "found": True}], "no_function"),
        ([{"none": ONE, "found": False}], "missing"),
        ([{"none": ONE, "found": 1}], "missing"),
        ([{"none": ONE, "found": False}, {"none": ONE, "found": True}], "missing"),
        ([{"answer": ONE, "attempts": [answer(ONE)["attempts"][0][1:]]}], "unreadable"),
        ([{"answer": ONE, "attempts": 3 * answer(ONE)["attempts"]}], "unreadable"),
        ([{"answer": ONE, "attempts": []}], "unreadable"),
        ([{"answer": ONE, "attempts": [[1]]}], "unreadable"),
        ([{"answer": ONE}], "unreadable"),
        ([{"answer": "other", "attempts": []}], None),
        ([{"answer": [ONE], "attempts": []}], None),
        ([{"at": "cell"}], None),
    ],
)
def test_a_message_is_an_answer_at_most_once(messages, found):
    work = Work()
    for message in messages:
        hear(message, work, {name: len(cases) for name, cases in CASES.items()}, [4])
    assert work.answers == ({ONE: found} if found else {})


def test_of_each_cell_the_first_error_is_kept_and_none_of_a_cell_that_is_not_there():
    work, many = Work(), {ONE: len(CASES[ONE])}
    for number, error in [(1, "KeyError"), (1, "ValueError"), ("2", "KeyError"), ([2], "KeyError"), (3, 4), (5, "Key")]:
        hear({"cell_error": number, "error": error, "module": "m" * 200, "newer": "3.14"}, work, many, [1, 2, 3])
    hear({"cell_error": 2, "error": "Own", "newer": "the inputs"}, work, many, [1, 2, 3])
    assert work.errors == {1: ("KeyError", "m" * 100, "3.14"), 2: ("an error of its own kind", "None", "")}


def test_an_answer_may_be_as_it_was_at_its_last_check_or_at_the_end():
    work, many = Work(), {name: len(cases) for name, cases in CASES.items()}
    values = [0.25, 0.5, 0.75]
    for kind, value in zip(("checked", "checked", "answer"), values, strict=True):
        hear({kind: ONE, "attempts": [[pack_outcome(Outcome(value))] * many[ONE]]}, work, many, [])
    hear({"checked": TWO, "attempts": "forged"}, work, many, [])
    hear({"none": TWO, "found": True}, work, many, [])
    assert [found[0].value for found in work.candidates(SET[0], CASES[ONE])] == values[1:]
    assert work.candidates(SET[1], CASES[TWO]) == ["no_function"]
