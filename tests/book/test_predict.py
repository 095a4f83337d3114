"""Predict boxes: what is on the page, what waits, and what is not a box."""

import json
import re

import pytest
from helpers import small_book

CHOICE = ":::{predict} left\n\nWhat is *left*?\n\n- [ ] All\n- [x] Nothing, $x=0$\n\nIt *halves*.\n:::\n"
SAID = {
    "output_type": "display_data",
    "data": {"text/plain": "alike = 0.12"},
    "metadata": {"said": {"alike": "0.12"}},
}


def built(folder, text):
    small_book.page(folder, text)
    warnings = small_book.build(folder)
    return small_book.html(folder), warnings


def waiting(html):
    return re.findall(
        r'<div class="foretold" data-for="([^"]*)"><script>subnormWait\(\)</script>(.*?)</div>', html, re.DOTALL
    )


def test_what_follows_up_to_the_next_heading_waits(tmp_path):
    html, warnings = built(tmp_path, f"Before.\n\n{CHOICE}\nAfter.\n\nMore.\n\n## Next\n\nFree.")
    assert warnings == ""
    ((name, inside),) = waiting(html)
    assert name == "index-left"
    assert "After." in inside
    assert "More." in inside
    assert "Free." not in inside
    assert "Before." not in inside
    assert "Nothing" not in inside


def test_what_follows_up_to_the_next_box_waits(tmp_path):
    html, _ = built(tmp_path, f"{CHOICE}\nOne.\n\n{CHOICE.replace('left', 'right')}\nTwo.")
    assert [(name, "One." in inside, "Two." in inside) for name, inside in waiting(html)] == [
        ("index-left", True, False),
        ("index-right", False, True),
    ]


def test_one_option_is_marked_right_and_the_box_is_not_drawn(tmp_path):
    html, _ = built(tmp_path, CHOICE)
    labels = re.findall(r"<label( data-right)?><input.*?<span>(.*?)</span></label>", html, re.DOTALL)
    assert [bool(right) for right, _ in labels] == [False, True]
    assert "[" not in labels[0][1]
    values = re.findall(r'type="radio" name="predict-index-left" value="(\w+)"', html)
    assert len(set(values)) == 2
    assert '<p class="reason" hidden>It <em>halves</em>.</p>' in html


def test_a_number_is_compared_with_what_a_notebook_said(tmp_path):
    small_book.notebook(tmp_path, small_book.code(SAID))
    html, _ = built(tmp_path, ":::{predict} alike\n:number: 03:alike\n:percent:\n\nHow alike?\n:::\n\nAfter.")
    assert 'data-truth="0.12" data-percent> %' in html
    assert 'data-kind="number"' in html


def test_a_curve_waits_for_the_sketch_that_follows(tmp_path):
    spec = {"name": "size", "kind": "sketch", "title": "Draw it", "alt": "A line", "controls": [], "knots": []}
    curve = {"name": "truth", "label": "m", "colour": "blue", "dash": "", "marks": None}
    axis = {"label": "x", "log": False, "limits": [0, 1], "ticks": None}
    spec |= {"panel": {"height": 200, "x": axis, "y": axis, "curves": [curve]}, "truth": {"x": [0, 1], "y": [0, 1]}}
    figure = {
        "output_type": "display_data",
        "data": {"image/png": "iVBORw0KGgo=", "text/plain": "A line"},
        "metadata": {"live": json.dumps(spec)},
    }
    box = small_book.markdown(":::{predict} draw\n:curve:\n\nDraw it.\n:::")
    small_book.notebook(tmp_path, box, small_book.code(figure), small_book.markdown("After."))
    small_book.page(tmp_path, "x")
    assert "predict" not in small_book.build(tmp_path)
    html = small_book.html(tmp_path, "notebooks/03-norms")
    (before, after) = html.split('<div class="foretold"')
    assert 'data-live="sketch"' in before
    assert "After." in after
    small_book.notebook(tmp_path, box, small_book.markdown("No sketch."))
    assert "no sketch follows it" in small_book.build(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CHOICE.replace("left", "Left!"), "its id is not of the form"),
        (CHOICE + "\n" + CHOICE, "another box of the page has its id"),
        (CHOICE.replace("[x]", "[ ]"), "one of them right"),
        (CHOICE.replace("[ ]", "[x]"), "one of them right"),
        (CHOICE.replace("\nIt *halves*.\n", ""), "says why one of them is right"),
        (CHOICE.replace("- [ ] All\n", ""), "two options or more"),
        (CHOICE.replace("[ ] All", "All"), "does not begin with [ ] or [x]"),
        (CHOICE.replace("left\n", "left\n:curve:\n"), "one of them only"),
        (":::{predict} a\n\nWhat?\n:::", "one of them only"),
        (":::{predict} a\n\n- [ ] b\n- [x] c\n:::", "does not begin with its question"),
        (":::{predict} a\n:number: 03:none\n\nWhat?\n:::", "0 notebooks are named"),
        (":::{predict} a\n:number: 03:none\n\nHow many: few, or all?\n:::", "the field takes a number only"),
    ],
)
def test_a_fault_is_a_warning_in_every_build(tmp_path, text, said):
    for _ in range(2):
        _, warnings = built(tmp_path, text)
        assert said in warnings


def test_pages_without_a_box_have_no_script(tmp_path):
    html, _ = built(tmp_path, CHOICE)
    assert "predict.js" in html
    html, _ = built(tmp_path, "Nothing.")
    assert "predict.js" not in html
