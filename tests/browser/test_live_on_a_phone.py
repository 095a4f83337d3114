"""On a phone, even a low one, you see a live figure's picture, controls and sentence at the same time."""

import pytest
from helpers.visit import PHONE, opened

LOW = {"width": 390, "height": 667}  # a phone whose browser shows its bars

PAGES = [
    "01-why-depth-breaks",
    "02-residual-connections",
    "03-layer-normalization",
    "03a-layer-norm-backward",
    "04-rmsnorm",
    "05-pre-ln-or-post-ln",
    "05c-rank-collapse",
    "06-the-block-assembled",
    "07-after-pre-ln",
    "08-how-fast-can-a-norm-be",
    "09-when-norms-go-wrong",
]

# For each figure, with the top of its picture below the bar of the page: what is not in sight, and where text is small.
HIDDEN = """async () => {
  document.documentElement.classList.remove("fresh");
  document.querySelectorAll("section.second-reading > details").forEach((fold) => { fold.open = true });
  document.querySelectorAll(".foretold[hidden]").forEach((part) => { part.hidden = false });
  const faults = [], box = (e) => e.getBoundingClientRect(), frame = () => new Promise(requestAnimationFrame);
  for (const figure of document.querySelectorAll("figure[data-live]")) {
    const [picture, controls, say] = ["picture", "controls", "say"].map((p) => figure.querySelector(`.live-${p}`));
    figure.scrollIntoView();
    while (!figure.matches(".live-on")) await frame();
    scrollBy(0, box(picture).top - box(document.querySelector(".bd-header-article")).bottom);
    for (let k = 0; k < 2; k++) await frame();
    const over = box(picture).bottom - box(controls).top, under = box(say).bottom - innerHeight;
    if (over > 1) faults.push(`${figure.id}: the controls cover ${Math.round(over)} px of the picture`);
    if (under > 1) faults.push(`${figure.id}: ${Math.round(under)} px of the sentence are below the window`);
    const scale = picture.firstChild.getScreenCTM().a;
    if (Math.abs(scale - 1) > 0.02) faults.push(`${figure.id}: drawn at ${scale.toFixed(2)} of its size`);
  }
  return faults;
}"""


@pytest.mark.parametrize("name", PAGES)
def test_picture_controls_and_sentence_are_seen_together(browser, server, name):
    with opened(browser, server, [], viewport=PHONE, reduced_motion="reduce") as page:
        page.goto(f"{server}notebooks/{name}.html")
        assert page.locator("figure[data-live]").count() > 0
        assert page.evaluate(HIDDEN) == []
        page.set_viewport_size(LOW)
        assert page.evaluate(HIDDEN) == []


PLANTED = {
    "the controls cover": ".live-picture { height: 760px !important }",
    "of the sentence are below": ".live-bar { position: static !important } .live-controls { height: 900px }",
    "of its size": ".live-picture svg { width: 50% !important }",
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(browser, server, fault):
    with opened(browser, server, [], viewport=PHONE, reduced_motion="reduce") as page:
        page.goto(f"{server}notebooks/04-rmsnorm.html")
        page.add_style_tag(content=PLANTED[fault])
        assert any(fault in found for found in page.evaluate(HIDDEN))
