"""tools/book.py: the real jupyter-book builds a small checkout, in a folder whose name has all kinds of letters.

What fails leaves the pages as they were, says where the error is, and fails again.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from helpers.small_book import code, copy_settings, markdown, notebook
from subnorm_book import PARTS

from tools import book

ROOT = Path(__file__).parents[1]
CONFIG = "title: Small\nonly_build_toc_files: true\nexclude_patterns: [_build]\nexecute: {execute_notebooks: 'off'}\n"
TOC = "format: jb-book\nroot: intro\nchapters:\n  - file: notebooks/03-norms\n  - file: book/more\n"
BUILD = (
    "import pathlib, sys\n"
    "from tools import build, checkout\n"
    "checkout.PYTHON = pathlib.Path(sys.executable)\n"
    "sys.exit(not build.build())"
)


def build(folder, **variables):
    """(whether it succeeded, its output)."""
    env = {**os.environ, **variables}
    done = subprocess.run([sys.executable, "-c", BUILD], cwd=folder, env=env, capture_output=True, encoding="utf-8")
    assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
    return done.returncode == 0, done.stdout


def pages(folder):
    """The pages, without the style sheet's version, which MyST-NB adds from the second build on."""
    found = folder / "_build" / "html"
    return {path.relative_to(found): re.sub(rb"\?v=\w+", b"", path.read_bytes()) for path in found.rglob("*.html")}


def checkout(folder):
    """A course of three pages, with an empty package and book, and a long, odd name."""
    folder.mkdir()
    shutil.copytree(ROOT / "tools", folder / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    files = {
        "_config.yml": CONFIG,
        "_toc.yml": TOC,
        "intro.md": "# Small\n\nA page.\n",
        "book/more.md": "# More\n\nMore.\n",
    }
    for name in ("book", "subnorm", "subnorm_lab", "subnorm_classroom"):
        (folder / name).mkdir()
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    (folder / "constraints.txt").touch()
    notebook(folder, markdown("A line.\n\nAnother line."), code())
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A checkout with its pages; each test leaves it unchanged, except for file times."""
    folder = checkout(tmp_path_factory.mktemp("Mein Kurs") / "subnorm ü")
    good, said = build(folder)
    assert good, said
    return folder


def broken_json(text):
    return text[: text.index("Another")]


def without_source(text):
    book = json.loads(text)
    del book["cells"][1]["source"]
    return json.dumps(book)


CELL = "notebooks/03-norms.ipynb"
FAULTS = {
    "a notebook cut off": (CELL, broken_json, f"{CELL}:1: this is not a notebook, because it is not JSON: "),
    "a cell without its source": (CELL, without_source, f"{CELL}, cell 2: it has no source"),
    "a list": (CELL, lambda _: "[]", f"{CELL}: this is not a notebook: it has no list of cells"),
    "a role in a notebook": (
        CELL,
        lambda text: text.replace("Another", "{nosuch}`x`"),
        f'{CELL}, cell 2, line 3: WARNING: Unknown interpreted text role "nosuch"',
    ),
    "a role on a page": (
        "book/more.md",
        lambda text: text + "\nMy {nosuch}`x`.\n",
        'book/more.md:5: WARNING: Unknown interpreted text role "nosuch"',
    ),
    "a list never closed": ("_toc.yml", lambda text: text.replace("chapters:", "chapters: ["), "_toc.yml:4: "),
    "an unknown key": (
        "_toc.yml",
        lambda text: text.replace("- file: book/more", "- fil: book/more"),
        "_toc.yml:5: entry does not contain one of",
    ),
    "no first page": ("_toc.yml", lambda text: text.replace("root", "rot"), "_toc.yml:1: 'root' key not found"),
    "a page that is not there": (
        "_toc.yml",
        lambda text: text.replace("- file: book/more", "- file: book/moer"),
        "_toc.yml:5: there is no page book/moer",
    ),
    "nothing": ("_toc.yml", lambda _: "", "_toc.yml:1: toc is not a mapping"),
    "settings never closed": ("_config.yml", lambda text: text + "html: {\n", "_config.yml:6: "),
}


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if "role" not in fault])
def test_a_file_that_cannot_be_read_is_named_with_its_place(tmp_path, fault):
    name, plant, said = FAULTS[fault]
    folder = checkout(tmp_path / "small")
    assert list(book.unreadable(folder)) == []
    (folder / name).write_text(plant((folder / name).read_text("utf-8")), "utf-8")
    assert [line[: len(said)] for line in book.unreadable(folder)] == [said]


@pytest.mark.parametrize(
    "faults", [["a notebook cut off", "an unknown key"], ["a role in a notebook", "a role on a page"]], ids=" and ".join
)
def test_errors_are_named_with_their_places_in_every_build_and_the_pages_stay(small, faults):
    before = pages(small)
    texts = {name: (small / name).read_text("utf-8") for name, *_ in map(FAULTS.get, faults)}
    for name, plant, _ in map(FAULTS.get, faults):
        (small / name).write_text(plant(texts[name]), "utf-8")
    try:
        for _ in range(2):
            good, found = build(small)
            assert not good
            for *_, said in map(FAULTS.get, faults):
                assert any(line.startswith(said) for line in found.splitlines()), found
            assert f"The pages are still those of the last build without errors: {small}" in found
            assert pages(small) == before
    finally:
        for name, text in texts.items():
            (small / name).write_text(text, "utf-8")
    good, found = build(small)
    assert good, found
    assert "up to date" in found


def test_a_page_changed_after_a_failure_is_the_book_of_a_build_from_nothing(small, tmp_path):
    (small / "book" / "more.md").write_text("# More\n\n{nosuch}`x`\n", "utf-8")
    assert not build(small)[0]
    other = checkout(tmp_path / "other")
    for folder in (small, other):
        (folder / "book" / "more.md").write_text("# More\n\nChanged, and {doc}`/intro`.\n", "utf-8")
        assert build(folder)[0]
    assert b"Changed, and" in pages(small)[Path("book/more.html")]
    assert pages(small) == pages(other)


def test_modules_of_the_same_name_elsewhere_do_not_take_the_place_of_the_extensions(tmp_path):
    """Jupyter Book puts our extensions last on the path, where an installed `tables` would shadow ours."""
    other = tmp_path / "site-packages"
    other.mkdir()
    package = ROOT / "book" / "subnorm_book"
    for path in package.rglob("*.py"):
        if path.stem != "__init__":
            (other / path.name).write_text(f"raise ImportError('this {path.stem} is another one')\n", "utf-8")
    folder = checkout(tmp_path / "small")
    for name in ("book/subnorm_book", "book/_static"):
        shutil.copytree(ROOT / name, folder / name)
    (folder / "book" / "references.bib").write_bytes((ROOT / "book" / "references.bib").read_bytes())
    copy_settings(folder)
    (folder / "book" / "more.md").write_text("# More\n\nA formula, $x$, and {given}`0.5`.\n", "utf-8")
    good, said = build(folder, PYTHONPATH=str(other))
    assert good, said
    page = pages(folder)[Path("book/more.html")].decode()
    assert 'class="katex"' in page


def test_every_part_of_the_extension_is_in_its_order():
    """A part that nobody loads would change nothing, and nobody would notice."""
    local = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))["sphinx"]["local_extensions"]
    assert local == {"subnorm_book": "book"}
    files = (ROOT / "book" / "subnorm_book").rglob("*.py")
    parts = [f for f in files if "\ndef setup(" in f.read_text("utf-8") and f.name != "__init__.py"]
    folder = ROOT / "book" / "subnorm_book"
    assert sorted(PARTS) == sorted(".".join(f.relative_to(folder).with_suffix("").parts) for f in parts)
