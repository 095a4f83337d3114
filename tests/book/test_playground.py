"""The starters of the playground: each shows what its question asks for, whatever the seed."""

import contextlib
import functools
import io
import json
import re
from html import unescape

import pytest
from helpers.built import up_to_date
from subnorm_book.in_page import packs, playground

from subnorm_lab.stories import files as story_files
from tools import checkout

STARTERS = playground.starters(checkout.ROOT)
SEEDS = range(8)
LIMIT = 9_000_000  # bytes, as in test_in_page.py


@functools.cache
def printed(name, seed=0):
    """The lines that a starter prints, with another seed."""
    code = STARTERS[name]["code"]
    assert seed == 0 or "default_rng(0)" in code
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(code.replace("default_rng(0)", f"default_rng({seed})"), {})
    return said.getvalue().rstrip("\n").split("\n")


def numbers(line):
    return [float(number.replace(",", "")) for number in re.findall(r"-?\d[\d,]*\.?\d*", line)]


@pytest.mark.parametrize("seed", SEEDS)
def test_layer_norm_does_not_see_a_shift_and_rms_norm_sees_little_else(seed):
    layer, before, after, rms, *last = (line.partition("[")[2] or line for line in printed("shift", seed))
    assert (layer, rms) == ("layer_norm", "rms_norm")
    assert before == after
    assert last[0] != last[1]
    assert all(0.9 < one < 1.1 for one in numbers(last[1]))


@pytest.mark.parametrize("seed", SEEDS)
def test_sixty_four_blocks(seed):
    plain, pre, post = (numbers(line)[0] for line in printed("depth", seed))
    assert plain > 1e8
    assert 6 < pre < 11  # the root of 65 is 8
    assert post == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_nearly_constant_token_is_not_brought_to_1(seed):
    stds = [numbers(line)[-1] for line in printed("constant", seed)]
    assert stds[0] == 1
    assert stds == sorted(stds, reverse=True)
    assert stds[-1] < 0.05


@pytest.mark.parametrize("seed", SEEDS)
def test_a_larger_input_has_the_same_output_and_a_smaller_gradient(seed):
    outputs, sizes = zip(*(line.partition(":")[2].split(", |dx| ") for line in printed("scale", seed)), strict=True)
    assert len(set(outputs)) == 1
    for k, size in enumerate(sizes[:3]):  # the fourth has two digits
        assert float(size) * 10**k == pytest.approx(float(sizes[0]), rel=2e-3)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_last_gradient_falls_with_depth_in_pre_ln_alone(seed):
    pre, post = zip(*(numbers(line.replace("-LN", ""))[-2:] for line in printed("gradient", seed)), strict=True)
    assert 3 < pre[0] / pre[-1] < 5.5  # the root of 16 is 4
    assert 0.75 < post[0] / post[-1] < 1.33


def test_the_model_goes_on_from_the_beginning_that_it_is_given():
    text = " ".join(printed("story"))
    assert text.startswith("One day, a dog named")
    assert len(text) > 100


def test_a_gain_can_be_heard_and_a_mean_hardly():
    told = dict(paragraph.split(": ", 1) for paragraph in "\n".join(printed("norms")).split("\n\n"))
    published = story_files.published()[0].split()

    def same(name):
        words = told[name].split()
        return next((k for k, (a, b) in enumerate(zip(words, published, strict=False)) if a != b), len(words))

    assert list(told) == ["rms_norm", "layer_norm", "no_gain", "no_norm"]
    assert published[-1] not in told["rms_norm"]
    assert same("rms_norm") >= len(told["rms_norm"].split()) - 1  # the last word may be cut
    assert same("layer_norm") > 20
    assert max(same("no_gain"), same("no_norm")) <= 3


def test_every_starter_has_a_title_a_question_and_a_test():
    assert set(STARTERS) == {"shift", "depth", "constant", "scale", "gradient", "story", "norms", "own"}
    for name, one in STARTERS.items():
        assert 5 < len(one["title"]) < 30, name
        assert one["question"].endswith((".", "?")), name
        assert one["code"].count("\n") <= 25, name
        assert all(len(line) <= 100 for line in one["code"].split("\n")), name
        assert 0 < max(map(len, printed(name))) <= 40, name  # letters in a line of a phone


@pytest.mark.parametrize(("name", "count"), [("playground", 1), ("story", 2)])
def test_a_page_knows_what_it_loads(name, count):
    assert up_to_date()
    html = (checkout.PAGES / "book" / f"{name}.html").read_text("utf-8")
    about = json.loads(unescape(re.search(r'data-playground="([^"]*)"', html)[1]))
    here = about["python"]
    assert len(here["packs"]) == 1 + count
    for pack, part in {**here["parts"], **here["more"]}.items():
        if pack in packs.PACKS:
            assert part == packs.describe_part((checkout.PAGES / "_static/python" / pack).read_bytes())
    assert playground.MODEL in {**here["parts"], **here["more"]}
    assert sum(part["bytes"] for part in {**here["parts"], **here["more"]}.values()) <= LIMIT
    assert not re.search(r"<(script|link)[^>]*(python/|worker)", html)


def test_the_listing_in_the_page_is_the_listing():
    assert up_to_date()
    html = (checkout.PAGES / "book/story.html").read_text("utf-8")
    field = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", html, re.DOTALL)[1]
    assert unescape(field) == (checkout.ROOT / "book/story.py").read_text("utf-8")
