"""The search finds a question, as it is written and in other words."""

import pytest
from helpers.look import accessible
from helpers.visit import DESK, PHONE, opened

IN_OTHER_WORDS = {
    "why is LayerNorm not quantized": "why-is-layernorm-not-quantised-to-int8",
    "expected scalar type Half but found Float": "expected-scalar-type-half-but-found-float-in-layer-norm",
    "LayerNorm outputs zeros": "nn-layernorm-outputs-zeros-for-my-16-1-batch-bug",
    "why is nn.RMSNorm slower?": "why-is-nn-rmsnorm-slower-than-nn-layernorm",
    "QK-norm before or after RoPE": "why-is-qk-norm-applied-before-rope-and-not-after",
    "T5 NaN in fp16": "t5-gives-nan-in-fp16-first-seen-in-t5layernorm-upcasting-in-the-norm-does-not-help",
    "difference between RMSNorm and LayerNorm": "what-is-the-difference-between-layernorm-and-rmsnorm",
}
SYMPTOMS = "09d-when-something-breaks#"
NOT_A_QUESTION = ["residual connection", "layer norm", "learning rate warmup", "group normalization"]


def test_every_question_finds_itself(browser, server, search):
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + "book/questions.html")
        asked = page.locator("article section:has(> h3)").evaluate_all(
            "(list) => Object.fromEntries(list.map((e) => [e.id, e.querySelector('h3').textContent.replace(/#$/, '')]))"
        )
    assert len(asked) > 50
    found = {name: search(text) for name, text in asked.items()}
    # a message of an error is on the page for messages, too, and before the question
    first = {
        name: next(hit for hit in hits if SYMPTOMS not in hit) for name, hits in found.items() if asked[name][0] == "“"
    }
    first |= {name: hits[0] for name, hits in found.items() if name not in first}
    assert first == {name: f"book/questions#{name}" for name in asked}


@pytest.mark.parametrize("window", [DESK, PHONE], ids=["desk", "phone"])
def test_words_choose_questions(browser, server, window):
    faults = []
    with opened(browser, server, faults, viewport=window) as page:
        page.goto(server + "book/questions.html")
        asked, contents = page.locator("article section:has(> h3)"), page.locator("nav.contents")
        total, shown = asked.count(), asked.locator("visible=true")
        answer = asked.locator("details p").first
        assert answer.is_visible() == (window == DESK)  # and on a phone folded
        if window == PHONE:
            asked.locator("summary").first.click()
            assert answer.is_visible()
        page.get_by_label("Find", exact=True).fill("gpt-2 1/√n")
        assert 0 < shown.count() < 5
        assert page.locator(".row-filter [role=status]").inner_text() == f"{shown.count()} of {total} questions"
        assert not contents.is_visible()
        assert page.locator("article h2").locator("visible=true").count() == 1
        page.get_by_label("Find", exact=True).fill("")
        assert shown.count() == total
        assert contents.is_visible() == (window == DESK)
        page.get_by_label("Find", exact=True).fill("gpt-2 1/√n")
        faults += accessible(page, "light", "dark")
    assert faults == []


@pytest.mark.parametrize(
    ("name", "typed", "has"),
    [
        ("book/questions.html", "bf16", "bfloat16"),
        ("book/questions.html", "do activations explode?", "activations from exploding"),
        ("book/questions.html", "skip connections", "residual connection"),
        ("book/claims.html", "exploding gradient", "gradient explodes"),
        ("book/models.html", "pre norm", "Pre"),
    ],
)
def test_a_filter_knows_the_forms_and_spellings_that_the_search_knows(browser, server, name, typed, has):
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(server + name)
        rows = page.locator(page.locator(".row-filter").get_attribute("data-rows"))
        total = rows.count()
        page.get_by_label("Find", exact=True).fill(typed)
        shown = rows.locator("visible=true").all_text_contents()
    assert 0 < len(shown) < total
    assert any(has in text for text in shown)


def test_a_question_is_found_in_other_words(search):
    first = {query: next(hit for hit in search(query) if SYMPTOMS not in hit) for query in IN_OTHER_WORDS}
    assert first == {query: f"book/questions#{name}" for query, name in IN_OTHER_WORDS.items()}


@pytest.mark.parametrize("query", NOT_A_QUESTION)
def test_a_term_finds_the_page_that_explains_it(search, query):
    assert not search(query)[0].startswith("book/questions")
