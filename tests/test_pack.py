"""The book to take along: a small book for what `pack` does, and one chapter of the real one on paper."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path
from urllib.parse import urldefrag

import nbformat
import pytest
from helpers.built import up_to_date
from helpers.parts import need
from helpers.visit import DESK, opened
from nbclient import NotebookClient
from playwright.sync_api import sync_playwright
from pypdf import PdfReader
from subnorm_book.output import repository_links

from subnorm_classroom.sheets import packing
from tools import browser, checkout, colab, pack, paper

HTML = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title} — Small</title></head><body><article class="bd-article">
<section id="top"><h1>{title}</h1>{opening}{text}</section>

</article></body></html>"""
OPENING = '<div class="opening docutils container">\n<p><strong>You need</strong> nothing.</p></div>'
PAGES = {
    "book/intro": ("Start", "", '<p><a href="../notebooks/01-one.html#far">One</a></p>'),
    "notebooks/01-one": (
        "One",
        OPENING,
        '<p><a href="#end">Down</a> <a href="01a-more.html">More</a> <a href="../search.html">Search</a> '
        '<a href="https://example.org/x">Elsewhere</a></p><h2>Near</h2><p style="break-before: page">Text.</p>'
        '<h2 id="end">End</h2><table id="far"><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>',
    ),
    "notebooks/01a-more": (
        "More",
        OPENING,
        '<p><a href="../book/intro.html">Back</a></p><table><tr><th>c</th><th>d</th></tr>'
        "<tr><td>3</td><td>4</td></tr></table>",
    ),
}
CONTENTS = [
    paper.Entry("", "book/intro"),
    paper.Entry("Chapters", "", [paper.Entry("01 One", "notebooks/01-one", [paper.Entry("", "notebooks/01a-more")])]),
]


@pytest.fixture
def small(tmp_path, monkeypatch):
    """The pages of a small book; what `pack` makes of them goes to a temporary folder."""
    need("chromium")
    for name, value in {"PACK": "_pack", "NEXT": "_build/pack", "OLD": "_build/pack-old"}.items():
        monkeypatch.setattr(pack, name, tmp_path / value)
    for name, (title, opening, text) in PAGES.items():
        file = tmp_path / "html" / f"{name}.html"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(HTML.format(title=title, opening=opening, text=text), "utf-8")
    return tmp_path / "html"


def contents_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def bookmarks(reader):
    """[title, number of the sheet, bookmarks below] of each bookmark."""

    def below(outline):
        found = []
        for item in outline:
            if isinstance(item, list):
                found[-1].append(below(item))
            else:
                found.append([item.title, reader.get_destination_page_number(item) + 1])
        return found

    return below(reader.outline)


def links(reader, sheet):
    """Where the links of a sheet lead: an address, or the number of a sheet."""
    numbers = {page.indirect_reference.idnum: n for n, page in enumerate(reader.pages, 1)}
    found = [link.get_object() for link in reader.pages[sheet - 1].get("/Annots", ())]
    return [link["/A"]["/URI"] if "/A" in link else numbers[next(iter(link["/Dest"])).idnum] for link in found]


# --- a small book


def test_a_small_book_is_packed(small):
    plain = contents_of(small)
    pack.pack(small, CONTENTS, "Small")
    assert contents_of(small) == plain  # no link to a download in the plain pages
    names = {"subnorm-book.zip", "subnorm-book.pdf", "pdf/intro.pdf", "pdf/01-one.pdf"}
    made = contents_of(pack.PACK)
    assert set(made) == {*names, *(f"site/{name}" for name in {*names, *plain})}
    assert [name for name, data in made.items() if name.endswith(".pdf") and b"(node0" in data] == []  # not repeatable
    with zipfile.ZipFile(pack.PACK / "subnorm-book.zip") as archive:
        assert {name: archive.read(f"subnorm-book/{name}") for name in plain} == plain
        assert len(archive.namelist()) == len(plain)

    site = pack.PACK / "site"
    for name in PAGES:
        page = site / f"{name}.html"
        for target in re.findall(r'href="([^"#:]+\.(?:pdf|zip))"', page.read_text("utf-8")):
            assert (page.parent / target).is_file()
    assert "../subnorm-book.zip" in (site / "book/intro.html").read_text("utf-8")
    for name in ("01-one", "01a-more"):
        assert 'href="../pdf/01-one.pdf"' in (site / f"notebooks/{name}.html").read_text("utf-8")

    os.utime(small / "book" / "intro.html", (2e9, 2e9))
    pack.pack(small, CONTENTS, "Small")
    assert contents_of(pack.PACK) == made  # the same pages, to the byte the same files


def test_the_bound_book_has_bookmarks_links_numbers_and_tags(small):
    pack.pack(small, CONTENTS, "Small")
    book = PdfReader(pack.PACK / "subnorm-book.pdf")
    assert [re.findall(r"\d+$", page.extract_text())[0] for page in book.pages] == ["1", "2", "3", "4"]
    below = [["Near", 2], ["End", 3], ["More", 4]]
    assert bookmarks(book) == [["Start", 1], ["Chapters", 2, [["01 One", 2, below]]]]
    assert links(book, 1) == [3]
    assert links(book, 2) == [3, 4, "https://example.org/x"]
    assert links(book, 4) == [1]
    assert book.metadata.title == "Small"
    assert book.metadata.creation_date is None
    assert book.root_object["/Lang"] == "en"

    chapter = PdfReader(pack.PACK / "pdf" / "01-one.pdf")
    assert bookmarks(chapter) == [["01 One", 1, [["Near", 1], ["End", 2], ["More", 3]]]]
    assert links(chapter, 1) == [2, 3, "https://example.org/x"]
    assert links(chapter, 3) == []  # its page is not in this file
    for reader in (book, chapter):
        assert faults_of_tags(reader) == []
    assert all(paper.SITE.encode() not in content for content in contents_of(pack.PACK).values())


def faults_of_tags(reader):
    """Sheets and links without tags, tags with the name of others, and headings of a table that are not there."""
    tree = reader.root_object["/StructTreeRoot"]
    parents = dict(paper.tree_items(tree["/ParentTree"]))
    faults = [] if len(parents) == tree["/ParentTreeNextKey"] else ["keys"]
    for sheet in reader.pages:
        faults += [] if parents[sheet["/StructParents"]].get_object()[0]["/Pg"] == sheet else ["a sheet"]
        for link in sheet.get("/Annots", ()):
            owner = parents[link.get_object()["/StructParent"]].get_object()
            parts = [part for part in paper.as_list(owner["/K"]) if isinstance(part, dict) and "/Obj" in part]
            faults += [] if link.idnum in [part.raw_get("/Obj").idnum for part in parts] else ["a link"]
    names = [name for name, _ in paper.tree_items(tree["/IDTree"])]
    faults += [] if names == sorted(set(names)) else ["names"]
    used, todo = set(), [tree["/K"]]
    while todo:
        element = todo.pop()
        for attributes in paper.as_list(element.get("/A")):
            used.update(attributes.get("/Headers", ()))
        todo += [child for child in paper.as_list(element.get("/K")) if isinstance(child, dict)]
    return faults + ([] if used <= set(names) else ["headings"])


def test_an_interrupted_pack_leaves_the_last_one(small, monkeypatch):
    pack.pack(small, CONTENTS, "Small")
    before = contents_of(pack.PACK)
    bind, calls = paper.bind, []

    def interrupted(*given):
        calls.append(given)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return bind(*given)

    monkeypatch.setattr(paper, "bind", interrupted)
    (small / "book" / "new.html").write_text("new", "utf-8")
    with pytest.raises(KeyboardInterrupt):
        pack.pack(small, CONTENTS, "Small")
    assert contents_of(pack.PACK) == before
    monkeypatch.setattr(paper, "bind", bind)
    pack.pack(small, CONTENTS, "Small")
    assert "site/book/new.html" in contents_of(pack.PACK)
    assert not pack.NEXT.exists()


def test_two_entries_of_one_name_are_refused(small):
    twice = [*CONTENTS, paper.Entry("Again", "book/intro")]
    with pytest.raises(SystemExit, match=r"both be intro\.pdf"):
        pack.pack(small, twice, "Small")
    assert not pack.PACK.exists()


def test_a_page_without_a_place_for_its_link_is_refused(small):
    page = small / "notebooks" / "01-one.html"
    page.write_text(page.read_text("utf-8").replace("opening", "closing"), "utf-8")
    with pytest.raises(SystemExit, match=r"01-one\.html has 0 places"):
        pack.pack(small, CONTENTS, "Small")


def test_without_chromium_it_says_what_to_install(small, monkeypatch):
    monkeypatch.setattr(browser, "chromium_path", lambda: None)
    with pytest.raises(SystemExit, match="needs Chromium: apt install chromium-headless-shell, or set CHROMIUM"):
        pack.pack(small, CONTENTS, "Small")
    assert not pack.PACK.exists()


# --- the real book


def test_the_contents_are_those_of_the_book():
    entries = paper.contents(checkout.ROOT / "_toc.yml")
    pages = [page for entry in entries for page in entry.pages()]
    listed = re.findall(r"(?:file|root): (\S+)", (checkout.ROOT / "_toc.yml").read_text("utf-8"))
    assert pages == listed
    assert entries[1].below[0].title == "01 Why depth breaks"
    assert [entry.page for entry in entries[1].below[0].below] == ["notebooks/01a-attention-in-twenty-lines"]
    names = [Path(entry.page).name for part in entries for entry in (part.below or [part])]
    assert len(names) == len(set(names))


def test_every_chapter_has_a_place_for_its_link(tmp_path):
    assert up_to_date()
    entries = paper.contents(checkout.ROOT / "_toc.yml")
    pages = [page for entry in entries for page in entry.pages()]
    for page in pages:
        (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(checkout.PAGES / f"{page}.html", tmp_path / f"{page}.html")
    for suffix in ("pdf", "zip"):
        (tmp_path / f"subnorm-book.{suffix}").write_bytes(b"")
    pack.add_links(tmp_path, "book/intro", {page: Path("x.pdf") for page in pages})
    linked = {page for page in pages if "x.pdf" in (tmp_path / f"{page}.html").read_text("utf-8")}
    assert linked == {page for page in pages if re.fullmatch(r"notebooks/\d\d.*", page)}


def test_a_chapter_reads_well_on_paper(tmp_path):
    need("chromium")
    assert up_to_date()
    pages = ["notebooks/06d-counting-parameters", "book/glossary"]
    files = paper.print_pages(checkout.PAGES, pages, tmp_path)
    paper.bind([paper.Entry("", page) for page in pages], files, tmp_path / "two.pdf", "Two")
    reader = PdfReader(tmp_path / "two.pdf")
    texts = [page.extract_text().splitlines() for page in reader.pages]
    titles = {item.title for item in flat(reader.outline)}
    assert [n for n, lines in enumerate(texts, 1) if len(lines) < 6] == []  # no empty sheet
    assert [lines[-2] for lines in texts if lines[-2].strip() in {*titles, "Predict"}] == []  # none ends in a heading
    html = (checkout.PAGES / f"{pages[0]}.html").read_text("utf-8")
    start = bookmarks(reader)[1][1]
    terms = [urldefrag(url).fragment for url in re.findall(r'href="(\.\./book/glossary\.html#term-[^"]+)"', html)]
    there = [n for n in links(reader, 1) if n >= start] if start > 1 else []
    assert terms
    assert there
    for n in there:
        assert any(term.removeprefix("term-").replace("-", " ") in " ".join(texts[n - 1]) for term in terms)
    assert faults_of_tags(reader) == []


def flat(outline):
    for item in outline:
        if isinstance(item, list):
            yield from flat(item)
        else:
            yield item


def test_the_zip_opens_offline_in_a_folder_of_any_name(tmp_path):
    path = need("chromium")
    assert up_to_date()
    pack.zip_pages(checkout.PAGES, tmp_path / "book.zip")
    folder = tmp_path / "für unterwegs"
    with zipfile.ZipFile(tmp_path / "book.zip") as archive:
        archive.extractall(folder)
    faults = []
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=browser.OPTIONS)
        with opened(chromium, "file://", faults, viewport=DESK, offline=True) as page:
            page.goto((folder / "subnorm-book" / "index.html").as_uri())
            page.wait_for_url("**/book/intro.html")
            page.get_by_role("link", name="Start with chapter 01").click()
            page.wait_for_url("**/notebooks/01-why-depth-breaks.html")
            assert page.locator("article h1").inner_text().startswith("Why depth breaks")
            page.wait_for_function("[...document.fonts].some((font) => font.status === 'loaded')")
            assert page.locator("article .katex").first.is_visible()
            slider = page.locator("figure.live input").first
            before = page.locator("figure.live").first.inner_html()
            slider.press("ArrowRight")
            assert page.locator("figure.live").first.inner_html() != before
            page.goto((folder / "subnorm-book" / "search.html").as_uri() + "?q=rmsnorm")
            page.locator("#search-results li").first.wait_for()
        chromium.close()
    assert faults == []


# --- Google Colab, Binder, a container


@pytest.fixture
def cloned(tmp_path):
    """A clone of the course with an address, one commit ahead of its remote."""

    def git(*words, cwd):
        words = ["git", "-c", "user.name=x", "-c", "user.email=x@localhost", *words]
        return subprocess.run(words, cwd=cwd, check=True, capture_output=True, encoding="utf-8").stdout.strip()

    clone = tmp_path / "clone"
    shutil.copytree(checkout.ROOT, clone, ignore=checkout.GENERATED)
    shutil.copytree(checkout.ROOT / ".ci", clone / ".ci")
    git("init", "--quiet", "--bare", str(tmp_path / "remote"), cwd=tmp_path)
    git("init", "--quiet", cwd=clone)
    git("remote", "add", "origin", str(tmp_path / "remote"), cwd=clone)
    git("add", ".", cwd=clone)
    git("commit", "--quiet", "-m", "x", cwd=clone)
    return clone, lambda *words: git(*words, cwd=clone)


SECTION = re.compile(r"\]\((?!https?:)[^()\s#]*#(?!scrollTo=)[^()\s]+\)")
CELL = re.compile(r"\]\((?!https?:)[^()\s#]*#scrollTo=[\w-]+\)")


def publish(clone):
    return subprocess.run([clone / ".ci" / "colab"], capture_output=True, encoding="utf-8", check=True).stdout


def test_without_an_address_nothing_is_published(cloned):
    clone, git = cloned
    assert "does not give the address" in publish(clone)
    assert git("ls-remote", "origin") == ""


def test_colab_gets_copies_that_install_the_package_of_their_commit(cloned):
    clone, git = cloned
    settings = clone / "pyproject.toml"
    line = re.compile("^# Repository = .*", re.MULTILINE)
    settings.write_text(line.sub('Repository = "https://github.com/o/n"', settings.read_text("utf-8")), "utf-8")
    git("commit", "--quiet", "-a", "-m", "address")
    for _ in range(2):  # the second time it replaces the branch
        publish(clone)
    git("fetch", "--quiet", "origin", "colab")
    names = git("-c", "core.quotepath=off", "ls-tree", "-r", "--name-only", "FETCH_HEAD").split("\n")
    assert names == [path.relative_to(checkout.ROOT).as_posix() for path in colab.notebooks_to_copy(checkout.ROOT)]
    assert git("rev-list", "--count", "FETCH_HEAD") == "1"
    assert git("status", "--porcelain") == ""
    commit = git("rev-parse", "HEAD")
    for name in names:
        copy = nbformat.reads(git("show", f"FETCH_HEAD:{name}"), 4)
        nbformat.validate(copy)
        assert copy.cells[0].source.split("\n")[1:] == [
            f'%pip install --quiet --no-deps "subnorm @ git+https://github.com/o/n@{commit}" '
            f"mini-racer=={metadata.version('mini-racer')} resvg-py=={metadata.version('resvg-py')}"
        ]
        cells = nbformat.read(checkout.ROOT / name, 4).cells
        for cell, copied in zip(cells, copy.cells[1:], strict=True):
            cell.metadata.id = cell.id
            if cell.metadata.get("jupyter") == {"source_hidden": True}:
                cell.metadata.cellView, cell.source = "form", f"# @title Proof\n{cell.source}"
            if cell.cell_type == "markdown":
                cell.source = cell.source.replace("](../book/", f"](https://github.com/o/n/blob/{commit}/book/")
                assert not SECTION.search(copied.source)
                assert CELL.sub("]", copied.source) == SECTION.sub("]", cell.source)
        assert [c for c in copy.cells[1:] if c.cell_type == "code"] == [c for c in cells if c.cell_type == "code"]
        assert any("cellView" in cell.metadata for cell in cells) or "student" in name


def test_a_link_to_a_section_names_its_cell_in_colab(tmp_path):
    """Colab follows no other."""
    here, other = tmp_path / "03-here.ipynb", tmp_path / "deep" / "04-other.ipynb"
    other.parent.mkdir()
    titles = [["# Other", "Text"], ["<!-- second-reading -->\n## What *eps*, `0` does?<!-- claim: 04-x -->\nIt."]]
    for path, sources in ((here, [["# Here"]]), (other, titles)):
        cells = [nbformat.v4.new_markdown_cell("\n".join(lines), id=f"cell-{k}") for k, lines in enumerate(sources)]
        nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    book = nbformat.read(here, 4)
    book.cells[0].source += (
        "\n[a](deep/04-other.ipynb#What-eps,-0-does?) [b](deep/04-other.ipynb#Other) [c](#Here) [d](#Gone) "
        "[e](deep/04-other.ipynb) [f](../../book/myths.md#eps) [g](https://x.org/y.ipynb#z)"
    )
    nbformat.write(book, here)
    copy = nbformat.reads(colab.copy(here, "https://github.com/o/n", "0"), 4)
    assert copy.cells[1].source.split("\n")[1] == (
        "[a](deep/04-other.ipynb#scrollTo=cell-1) [b](deep/04-other.ipynb#scrollTo=cell-0) [c](#scrollTo=cell-0) "
        "[d](#Gone) [e](deep/04-other.ipynb) [f](https://github.com/o/n/blob/0/book/myths.md#eps) "
        "[g](https://x.org/y.ipynb#z)"
    )
    assert copy.cells[1].metadata.id == "cell-0"


def test_every_link_to_colab_leads_to_a_copy():
    known = {path.relative_to(checkout.ROOT).as_posix() for path in colab.notebooks_to_copy(checkout.ROOT)}
    pages = [page for entry in paper.contents(checkout.ROOT / "_toc.yml") for page in entry.pages()]
    wanted = {repository_links.notebook_of(page) for page in pages if page.startswith("notebooks/")}
    assert wanted == known


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the package alone, as a wheel installs it."""
    folder = tmp_path_factory.mktemp("installed")
    name, content = packing.wheel_of(checkout.ROOT)
    (folder / name).write_bytes(content)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile"]
    subprocess.run([*pip, "--target", folder / "site", folder / name], check=True, capture_output=True)
    return folder / "site"


@pytest.mark.parametrize("name", ["06d-counting-parameters", "02a-recipes-of-the-family"])
def test_a_notebook_needs_only_the_installed_package(installed, tmp_path, monkeypatch, name):
    monkeypatch.setenv("PYTHONPATH", str(installed))
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    book = nbformat.reads(colab.copy(checkout.ROOT / "notebooks" / f"{name}.ipynb", "https://github.com/o/n", "0"), 4)
    book.cells[0] = nbformat.v4.new_code_cell("import subnorm_lab.stories as s; s.load(); print(s.__file__)")
    NotebookClient(book, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert book.cells[0].outputs[0].text.startswith(str(installed))


def test_binder_installs_the_pinned_course_with_a_python_that_it_accepts():
    lines = (checkout.ROOT / ".binder" / "requirements.txt").read_text("utf-8").splitlines()
    (included,) = [line.removeprefix("-r ") for line in lines if line.startswith("-r ")]
    assert (checkout.ROOT / ".binder" / included).resolve() == checkout.ROOT / "requirements.txt"
    # without this file repo2docker takes Python 3.10
    assert (checkout.ROOT / ".binder" / "runtime.txt").read_text("utf-8") == "python-3.11\n"
