"""The built pages. Each check is a function that lists faults, and is also tested on a planted fault below."""

import functools
import re
from urllib.parse import unquote

import pytest
import yaml
from bs4 import BeautifulSoup, Tag
from helpers.built import up_to_date

from tools import checkout
from tools.refresh import notebooks

ROOT = checkout.ROOT
HTML = checkout.PAGES
THEME_PAGES = {"index", "genindex", "search"}
SOURCES = {
    "img": "src",
    "script": "src",
    "link": "href",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "embed": "src",
}
LINKS_THAT_LOAD = {"stylesheet", "icon", "preload", "modulepreload", "prefetch", "preconnect", "dns-prefetch"}
ELSEWHERE = re.compile(r"^(https?:)?//")


def loads(soup):
    """The URLs that a browser fetches by itself to show this page."""
    for tag in soup.find_all(list(SOURCES)):
        address = tag.get(SOURCES[tag.name])
        if address and (tag.name != "link" or LINKS_THAT_LOAD & set(tag.get("rel", []))):
            yield address


def loads_from_elsewhere(soup, _path):
    inline = "".join(tag.text for tag in soup.find_all(["style", "script"]))
    return [a for a in loads(soup) if ELSEWHERE.match(a)] + re.findall(
        r"(?:url\(|@import|import\()\W*(https?:.*)", inline
    )


def lost_targets(soup, path):
    links = [a["href"] for a in soup.find_all("a", href=True)]
    local = [a for a in [*loads(soup), *links] if not ELSEWHERE.match(a) and not re.match(r"\w+:", a)]
    ids = {tag["id"] for tag in soup.find_all(id=True)}
    return [address for address in local if not leads_somewhere(unquote(address), ids, path)]


def leads_somewhere(address, ids, path):
    file, _, anchor = address.partition("#")
    target = (path.parent / file.partition("?")[0]).resolve() if file else path
    if target == path:
        return not anchor or anchor in ids
    return target.is_file() and (not anchor or anchor in ids_in(target))


@functools.cache
def ids_in(path):
    return set(re.findall(r'\sid="([^"]*)"', path.read_text("utf-8")))


def raw_math(soup, _path):
    text = "".join(prose(soup.find("article") or soup))
    return re.findall(r"\$[^$\n]*\$|\\[a-zA-Z]{2,}|\\\(|\\\[", text) + [t.text for t in soup.select(".bad-math")]


def prose(tag):
    """The text of a page without code and formulas."""
    for child in tag.children:
        if isinstance(child, Tag):
            classes = child.get("class", [])
            if (
                child.name not in ("pre", "script", "style", "code") and "katex" not in classes
            ) or "bad-math" in classes:
                yield from prose(child)
        else:
            yield child


def silent_pictures(soup, _path):
    pictures = [tag for tag in soup.find_all("img") if not usable(tag.get("alt", ""))]
    drawings = soup.select("article svg:not(.katex svg, [aria-hidden=true])")
    silent = [tag for tag in drawings if not (tag.find("title") or usable(tag.get("aria-label", "")))]
    return [str(tag)[:120] for tag in pictures + silent]


def usable(alt):
    return len(alt.split()) >= 4 and not alt.startswith("<") and not re.search(r"\.(png|svg|jpe?g)$", alt)


def bad_head(soup, _path):
    faults = []
    if not soup.html or soup.html.get("lang") != "en":
        faults.append("no language")
    if not soup.title or not soup.title.text.strip():
        faults.append("no title")
    for name in ("description", "viewport"):
        found = soup.find_all("meta", attrs={"name": name})
        if len(found) != 1 or not found[0]["content"].strip():
            faults.append(f"{len(found)} times {name}")
    if not soup.find("link", rel="icon"):
        faults.append("no icon")
    return faults


def bad_headings(soup, _path):
    """A theme script fails on a page with a margin note and no second-level heading."""
    article = soup.find("article")
    first, second = len(article.find_all("h1")), len(article.find_all("h2"))
    return [] if first == 1 and second >= 1 else [f"{first} h1, {second} h2"]


def trouble(soup, _path):
    words = ("Traceback (most recent call last)", "System Message:", "problematic")
    return [word for word in words if word in soup.text or soup.find(class_=word)]


def theme_leftovers(soup, _path):
    words = ("THEBE", "fontawesome.js", "ethical-ad", 'as="script"', "doc-biblio", "Toggle hidden")
    return [word for word in words if word in soup.source]


CHECKS = [
    loads_from_elsewhere,
    lost_targets,
    raw_math,
    silent_pictures,
    bad_head,
    bad_headings,
    trouble,
    theme_leftovers,
]
PLANTED = [
    (loads_from_elsewhere, '<script src="https://example.org/x.js"></script>'),
    (loads_from_elsewhere, '<img src="//example.org/x.png" alt="four words are here">'),
    (loads_from_elsewhere, '<link rel="stylesheet" href="https://example.org/x.css">'),
    (loads_from_elsewhere, "<style>@import 'https://example.org/x.css'</style>"),
    (loads_from_elsewhere, "<style>p { background: url(https://example.org/x.png) }</style>"),
    (lost_targets, '<a href="gone.html">x</a>'),
    (lost_targets, '<a href="#gone">x</a>'),
    (lost_targets, '<img src="gone.png" alt="four words are here">'),
    (raw_math, "<p>so $x^2$ is</p>"),
    (raw_math, r"<p>so \frac{1}{2} is</p>"),
    (raw_math, '<code class="bad-math">x</code>'),
    (silent_pictures, '<img src="a.png">'),
    (silent_pictures, '<img src="a.png" alt="_images/0123.png">'),
    (silent_pictures, '<img src="a.png" alt="<Figure size 640x480 with 1 Axes>">'),
    (silent_pictures, "<article><svg></svg></article>"),
    (bad_head, "<html><title>x</title></html>"),
    (bad_headings, "<article><h1>x</h1></article>"),
    (bad_headings, "<article><h1>x</h1><h1>y</h1><h2>z</h2></article>"),
    (trouble, "<pre>Traceback (most recent call last)</pre>"),
    (trouble, '<a class="problematic">x</a>'),
    (theme_leftovers, '<script src="fontawesome.js"></script>'),
]


def parse(html):
    soup = BeautifulSoup(html, "html.parser")
    soup.source = html
    return soup


@pytest.mark.parametrize(("check", "html"), PLANTED, ids=lambda value: getattr(value, "__name__", None))
def test_a_planted_fault_is_found(check, html, tmp_path):
    assert check(parse(html), tmp_path / "page.html")


@pytest.fixture(scope="session")
def pages():
    """{path: parsed page} of an up-to-date book."""
    assert up_to_date()
    paths = [path for path in sorted(HTML.rglob("*.html")) if "_static" not in path.relative_to(HTML).parts]
    return {path: parse(path.read_text("utf-8")) for path in paths}


def name(path):
    return path.relative_to(HTML).with_suffix("").as_posix()


def files_in_toc(part):
    if "file" in part or "root" in part:
        yield part.get("file") or part["root"]
    for key in ("parts", "chapters", "sections"):
        for child in part.get(key, []):
            yield from files_in_toc(child)


def test_pages_are_those_of_the_toc(pages):
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    assert {name(path) for path in pages} - THEME_PAGES == set(files_in_toc(toc))


def test_next_and_previous_follow_the_toc_over_the_deep_dives(pages):
    order = list(files_in_toc(yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))))
    by_name = {name(path): (path, soup) for path, soup in pages.items()}
    spine = [file for file in order if not re.match(r"notebooks/\d\d[a-z]", file)]
    for link, neighbours in (("right-next", [*spine[1:], None]), ("left-prev", [None, *spine[:-1]])):
        assert [leads_to(link, *by_name[file]) for file in spine] == neighbours
    for dive in set(order) - set(spine):
        chapter = next(file for file in spine if file.startswith(dive[:12]))
        assert leads_to("left-prev", *by_name[dive]) == chapter
        assert leads_to("right-next", *by_name[dive]) == spine[spine.index(chapter) + 1]


def test_the_foot_of_a_page_offers_the_deep_dives_that_next_passes_by(pages):
    by_name = {name(path): (path, soup) for path, soup in pages.items()}
    numbered = sorted(page for page in by_name if re.match(r"notebooks/\d\d", page))
    for page in numbered:
        path, soup = by_name[page]
        passed = [other for other in numbered if other[:12] == page[:12] and other > page and other[12] != "-"]
        links = soup.select(".passed-by a")
        assert [name((path.parent / link["href"]).resolve()) for link in links] == sorted(passed)
        assert all(link.text.startswith(other[10:13]) for link, other in zip(links, sorted(passed), strict=True))
    assert by_name["book/glossary"][1].select(".passed-by") == []
    assert by_name["book/intro"][1].select_one(".right-next .prev-next-title").text == "01 Why depth breaks"


def leads_to(link, path, soup):
    found = soup.select_one(f"a.{link}")
    return found and name((path.parent / found["href"]).resolve())


def test_the_table_of_the_collapse_waits_for_the_prediction_that_it_answers(pages):
    waits = pages[HTML / "notebooks/05c-rank-collapse.html"].select_one('.foretold[data-for$="one-token-left"]')
    assert "lowest to highest" in waits.get_text()


def test_every_page_and_notebook_is_in_the_toc():
    toc = set(files_in_toc(yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))))
    files = [*ROOT.glob("book/**/*.md"), *notebooks()]
    assert {path.relative_to(ROOT).with_suffix("").as_posix() for path in files} == toc


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_pages_pass(check, pages):
    left_out = THEME_PAGES if check is bad_headings else set()
    own = {path: soup for path, soup in pages.items() if name(path) not in left_out}
    assert {name(path): found for path, soup in own.items() if (found := check(soup, path))} == {}


def test_style_sheets_load_nothing_from_elsewhere(pages):
    sheets = list(HTML.glob("_static/**/*.css"))
    assert sheets
    found = {p.name: re.findall(r"(?:url\(|@import)\W{0,2}(?:https?:)?//[^)\s]*", p.read_text("utf-8")) for p in sheets}
    assert {sheet: addresses for sheet, addresses in found.items() if addresses} == {}
