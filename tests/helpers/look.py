"""How the tests look at a page of the book: its layout, its colours, and whether everybody can use it."""

import json
from importlib.resources import files
from pathlib import Path

from helpers.visit import DESK, ZOOMED

LOOK = Path(__file__).with_name("look.js").read_text("utf-8")
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")

# Axe takes its time for each element, so it gets few. A formula has the colour of the text round it, and axe has no
# rule for MathML, nor for the words of a listing and the shapes of a picture with a name. Contrast takes it
# milliseconds, and follows from the computed style of a text, of the text round it (for a link) and of the grounds
# under it: of elements that share these, the first two are enough, also of those on several pages (two, for one may be
# hidden). What is laid over other elements counts by its classes, too. So the browser keeps what it has seen from page
# to page. Names, roles and sizes are the same in the dark: the other rules run in the light, those for best practice
# too; then, for the dark, the page loses all but its new looks and what they lie in. The size of targets (WCAG 2.2) is
# off unless asked for.
ACCESSIBLE = """async (scheme) => {
  const known = new Map(JSON.parse(sessionStorage.getItem("looks") || "[]"));
  const grounds = new Map([[null, ""]]);
  const ground = (e) => grounds.get(e) ?? grounds.set(e, laid(getComputedStyle(e), e)).get(e);
  const laid = (s, e) => {
    const own = [s.backgroundColor, s.backgroundImage, s.opacity, s.filter, s.mixBlendMode].join();
    const over = ["static", "relative"].includes(s.position) ? "" : `${s.position} ${e.tagName} ${e.className}`;
    return ground(e.parentElement) + (own === "rgba(0, 0, 0, 0),none,1,none,normal" ? "" : `/${own}`) + over;
  };
  document.querySelectorAll(".katex").forEach((e) => e.replaceChildren("formula"));
  const first = new Set();
  for (const e of document.querySelectorAll("body *:not(svg *)")) {
    const text = [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim());
    if (!text || !e.checkVisibility()) continue;
    const s = getComputedStyle(e);
    const link = e.closest("a[href], [role=link]");
    const round = link ? [getComputedStyle(link.parentElement).color, getComputedStyle(link).textDecorationLine] : "";
    const off = Boolean(e.closest(":disabled, [aria-disabled=true]"));
    const look = [s.color, s.fontSize, s.fontWeight, s.textShadow, round, off, ground(e)].join();
    const times = known.get(look) ?? 0;
    if (times === 2) continue;
    known.set(look, times + 1);
    for (const part of link ? [e, link] : [e]) first.add(part);
  }
  sessionStorage.setItem("looks", JSON.stringify([...known]));
  if (scheme === "dark" && first.size === 0) return [];
  if (scheme === "dark") {
    const kept = new Set();
    const keep = (e) => {
      if (!e || kept.has(e)) return;
      kept.add(e);
      if (getComputedStyle(e).position === "absolute") e.offsetParent?.querySelectorAll("*").forEach(keep);
      keep(e.parentElement);
    };
    first.forEach(keep);
    const others = (e) => [...e.children].flatMap((part) => // an editor stays whole, or its script complains
      (part.matches(".cm-editor") ? [] : kept.has(part) ? others(part) : part));
    const away = document.createElement("div"); // the page's script asks what it observes for its parent
    away.append(...others(document.body).filter((e) => !e.matches("style, link")));
  }
  first.forEach((e) => e.setAttribute("data-first", ""));
  const plain = (e) => !e.matches("[data-first]") && [...e.attributes].every(({ name }) => name === "class");
  for (const e of document.querySelectorAll("article pre"))
    if ([...e.querySelectorAll("*")].every((part) => part.matches("span") && plain(part)))
      e.replaceChildren(e.firstChild, "code"); // the page's script observes the first
  for (const e of document.querySelectorAll("svg[role=img]"))
    if (!e.querySelector("a, title, [role], [tabindex], [id]")) e.replaceChildren();
  axe.configure({ rules: [
    { id: "color-contrast", selector: "[data-first]" },
    { id: "link-in-text-block", selector: ":is(a[href], [role=link])[data-first]" },
  ] });
  const all = { rules: { "target-size": { enabled: true } } };
  const only = scheme === "light" ? all : { runOnly: ["color-contrast", "link-in-text-block"] };
  const { violations } = await axe.run({ resultTypes: ["violations"], preload: { assets: ["media"] }, ...only });
  document.querySelectorAll("[data-first]").forEach((e) => e.removeAttribute("data-first"));
  return violations.flatMap(({ id, impact, nodes }) => nodes.map((n) => `${impact} ${id}: ${n.html.slice(0, 100)}`));
}"""


# With all folds open: how far the page can be scrolled sideways, and what lies beyond its edge without a box that
# scrolls.
CUT = """async () => {
  document.documentElement.classList.remove("fresh");
  document.querySelectorAll("article details").forEach((fold) => { fold.open = true });
  document.querySelectorAll(".foretold[hidden]").forEach((part) => { part.hidden = false });
  for (let k = 0; k < 2; k++) await new Promise(requestAnimationFrame);
  document.getAnimations().forEach((fade) => fade.finish()); // what opens fades in
  const over = document.documentElement.scrollWidth - innerWidth;
  const scrolls = (e) => e && e.tagName !== "ARTICLE" &&
    (/auto|scroll/.test(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
  const cut = [...document.querySelectorAll("article *")].filter((e) => {
    const box = e.getBoundingClientRect();
    return box.width > 1 && (box.right > innerWidth + 1 || box.left < -1) && e.checkVisibility() &&
      !e.closest("svg, .katex-mathml") && !scrolls(e.parentElement);
  });
  const wide = over > 0 ? [`${over} px wider than the window`] : [];
  return [...wide, ...cut.map((e) => `cut off: ${e.outerHTML.slice(0, 100)}`)];
}"""


# The labels of figures that are drawn in letters of less than 11 CSS pixels. A figure is an SVG, in a file or in the
# page itself; a formula in it is an outline, and no label. A live figure is drawn anew where the reader comes near.
SMALL = """async () => {
  const small = new Set();
  const measure = (svg, scale) => svg.querySelectorAll("text, tspan").forEach((text) => {
    const size = parseFloat(getComputedStyle(text).fontSize) * scale(text);
    if (size < 10.99) small.add(`${size.toFixed(1)} px: ${text.textContent.trim()}`);
  });
  const images = [...document.querySelectorAll("article .cell_output img")].filter((image) => image.checkVisibility());
  const drawings = await Promise.all(images.map(async (image) => {
    const text = await (await fetch(image.currentSrc)).text();
    const svg = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
    return [svg, image.getBoundingClientRect().width];
  }));
  const place = document.body.appendChild(document.createElement("div")); // all at once: one layout of the page
  for (const [svg] of drawings)
    place.appendChild(document.createElement("div")).attachShadow({ mode: "open" }).append(svg); // each by itself
  for (const [svg, width] of drawings) measure(svg, () => width / svg.viewBox.baseVal.width);
  place.remove();
  for (const svg of document.querySelectorAll("article svg:not(.live-picture svg)"))
    if (svg.checkVisibility()) measure(svg, (text) => text.getScreenCTM().a);
  return [...small];
}"""


# The page hears of another scheme in some frame, late on a busy machine; then some colours fade. Without its script it
# never hears: `look` finds that.
TURNED = """async (scheme) => {
  const frame = () => new Promise(requestAnimationFrame);
  for (let k = 0; k < 300 && document.documentElement.dataset.theme !== scheme; k++) await frame();
  for (let k = 0; k < 2; k++) await frame();
  document.getAnimations().forEach((fade) => fade.finish());
}"""


def turn(page, scheme):
    """Let the reader now prefer `scheme`."""
    page.emulate_media(color_scheme=scheme)
    page.evaluate(TURNED, scheme)


def look(page, scheme, first=True):
    """What is wrong with the page that is open, for a reader who prefers `scheme`."""
    turn(page, scheme)
    return [f"{scheme}: {fault}" for fault in page.evaluate(f"({LOOK})('{scheme}', {json.dumps(first)})")]


def accessible(page, *schemes):
    """What axe says of the page that is open, which then lacks its formulas, and after "dark" most of its text."""
    faults = []
    page.evaluate(AXE)
    for scheme in sorted(schemes, reverse=True):  # the light first
        turn(page, scheme)
        faults += [f"{scheme}: {fault}" for fault in page.evaluate(ACCESSIBLE, scheme)]
    return faults


# What of the opening of a chapter is not on the first screen, or not in its order: title, sentence, picture, controls,
# and below them what the chapter needs.
OPENING = """async () => {
  const frame = () => new Promise(requestAnimationFrame);
  scrollTo({ top: 0, behavior: "instant" });
  const article = document.querySelector("article"), figure = article.querySelector("figure.live");
  while (!figure.matches(".live-on")) await frame();
  for (let k = 0; k < 3; k++) await frame();
  const box = (e) => e.getBoundingClientRect();
  const parts = { title: article.querySelector("h1"), sentence: article.querySelector("h1 + p"),
    picture: figure.querySelector(".live-picture"), controls: figure.querySelector(".live-controls") };
  const boxes = Object.entries(parts).map(([name, part]) => ({ name, ...box(part).toJSON() }));
  const faults = [];
  boxes.forEach(({ name, top, bottom }, k) => {
    if (bottom > innerHeight) faults.push(`${name}: down to ${Math.round(bottom)} px`);
    if (k && top < boxes[k - 1].bottom - 1) faults.push(`the ${name} covers the ${boxes[k - 1].name}`);
  });
  const controls = boxes[3], contents = box(document.querySelector(".bd-sidebar-secondary"));
  if (box(article.querySelector(".opening")).top < controls.bottom) faults.push("what the chapter needs is above");
  if (innerWidth >= 1200 && contents.top < controls.bottom) faults.push("the contents cover the figure");
  if (innerWidth >= 1200 && controls.right < contents.left + 100) faults.push("the figure leaves the margin free");
  for (const label of figure.querySelectorAll("svg text"))
    if (parseFloat(getComputedStyle(label).fontSize) < 11) faults.push(`too small: ${label.textContent}`);
  return faults;
}"""


def read_to_the_end(page):
    """What is wrong with the page that has opened in the dark: read to its end, and then in the light, on a desk."""
    return [*look(page, "dark"), *turn_to_desk(page)]


def turn_to_desk(page):
    """What is wrong with a page that was read, when the reader goes to a desk, and turns to the light."""
    page.set_viewport_size(DESK)
    return look(page, "light", first=False)


def zoom(page):
    """What is cut off at 400 % zoom, and what axe says there; then little of the page is left."""
    page.set_viewport_size(ZOOMED)
    return [f"zoomed: {fault}" for fault in (*page.evaluate(CUT), *accessible(page, "light", "dark"))]
