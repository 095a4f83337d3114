"""What the trained model says with an answer: bounded, the same every time, and no part of a verdict."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from checks import bank_ex06

from subnorm_lab import checks, stories
from subnorm_lab.checks import speech
from subnorm_lab.checks.speech import TOKENS, right_words, tell_story
from subnorm_lab.stories import files as story_files

EXERCISES = {exercise.name: exercise for exercise in checks.SETS["ex06"]}
RIGHT = {name: exercise.reference for name, exercise in EXERCISES.items()}
INAUDIBLE = "These are the right words: you cannot hear this mistake."


def mistaken(name, tag):
    return next(mistake.answer for mistake in EXERCISES[name].mistakes if mistake.tag == tag)


def test_with_right_functions_it_tells_what_its_author_published():
    assert right_words(TOKENS) == stories.generate(stories.load(), tokens=TOKENS)
    assert len(right_words(TOKENS)) > 100


@pytest.mark.parametrize("name", RIGHT)
def test_other_right_functions_tell_the_same(name):
    for answer in bank_ex06.RIGHT[name]:
        assert tell_story({name: answer}, 20) == right_words(20)


def test_a_check_shows_it_below_a_wrong_answer_and_its_verdict_does_not_depend_on_it(capsys):
    for name, tag in [("norm", "no_gamma"), ("norm", "eps_outside"), ("story_block", "post_ln")]:
        answer = mistaken(name, tag)
        result = EXERCISES[name](answer)
        above, line = capsys.readouterr().out.rstrip("\n").rsplit("\n", 1)
        assert result == replace(EXERCISES[name], speaks=None)(answer)
        assert capsys.readouterr().out == above + "\n"
        assert above == str(result)
        assert line.startswith("   The model then says “")
        assert (INAUDIBLE in line) == (tag == "eps_outside")


@pytest.mark.parametrize("answer", [RIGHT["norm"], lambda *args: None, lambda *args: 1 / 0, 3])
def test_nothing_is_said_of_an_answer_that_is_right_or_does_not_run(answer, capsys):
    checks.norm(answer)
    assert "The model then says" not in capsys.readouterr().out


def test_a_loud_mistake_does_not_begin_the_story():
    for name, tag in [("norm", "no_gamma"), ("story_block", "no_residual"), ("tell", "least_likely")]:
        assert not tell_story({name: mistaken(name, tag)}, 12).startswith("Once upon a time")


def without_end(next_scores, tokens, count, end):
    while True:
        next_scores(tokens)


def leaves(*args):
    raise SystemExit


SILENT = {
    "an error": ("norm", lambda x, gamma, eps: 1 / 0, "norm raises ZeroDivisionError"),
    "an end of Python": ("swiglu", leaves, "swiglu raises SystemExit"),
    "nothing": ("head", lambda q, k, v: None, "head is not done yet"),
    "an error inside another function": ("story_block", lambda x, a, f, norm, g: a(x[0]), "story_block raises"),
    "a shape": ("head", lambda q, k, v: v[0], "it cannot use a result"),
    "no end": ("tell", without_end, "tell does not end"),
    "no such token": ("tell", lambda *args: [10**9], "it cannot use a result (IndexError)"),
    "words": ("tell", lambda *args: "words", "it cannot use a result (ValueError)"),
}


@pytest.mark.parametrize("kind", SILENT)
def test_an_answer_that_cannot_speak_is_reported(kind):
    name, answer, why = SILENT[kind]
    assert speech.speech(name, answer).startswith(f"nothing, because {why}")


def test_what_is_shown_is_short_and_printable():
    endless = speech.speech("tell", lambda *args: itertools.repeat(4))
    assert endless == "nothing, because tell raises TypeError."
    for token in (200, 4 + 27):  # a broken character, an escape
        shown = speech.speech("tell", lambda *args, token=token: [token, *[300] * 10**6])
        assert len(shown) <= speech.LONGEST + 3
        assert shown.isprintable()
    assert speech.speech("next_scores", lambda *args: np.eye(512)[stories.BOS]) == "nothing."


def test_a_loop_without_end_ends_in_the_check(capsys):
    assert checks.tell(without_end).tag == "error"
    assert "next_scores was called more than 100 times: does your loop end?" in capsys.readouterr().out


def test_a_function_that_writes_to_its_inputs_harms_no_weight():
    def greedy(h, gate, up, down):
        y = RIGHT["swiglu"](h, gate, up, down)
        gate *= 0
        return y

    assert tell_story({"swiglu": greedy}, 12) == right_words(12)


def test_the_story_of_ones_own_functions(capsys):
    checks.story(**RIGHT)
    out = capsys.readouterr().out
    words = out.split("\n\n✓ story: word for word")[0].split()
    assert words == story_files.published()[0].split()[: len(words)]
    assert len(words) > 50
    assert words[-1].endswith(".")
    checks.story(**RIGHT | {"next_scores": mistaken("next_scores", "no_final_norm")})
    assert "○ story: after 15 words it leaves the story" in capsys.readouterr().out


def test_a_story_without_all_functions_says_which_is_missing(capsys):
    def unwritten(*args):
        raise NotImplementedError

    checks.story(**dict.fromkeys(RIGHT, unwritten))
    assert capsys.readouterr().out == "○ story: the model says nothing yet, because tell is not done yet.\n"
    checks.story(**RIGHT | {"swiglu": unwritten})
    assert capsys.readouterr().out == "○ story: the model says nothing yet, because swiglu is not done yet.\n"


def test_an_answer_for_tensors_is_a_part_too():
    answers = {name: next(a for a in bank_ex06.RIGHT[name] if "torch" in a.__name__) for name in RIGHT}
    assert tell_story(answers, 12) == right_words(12)
