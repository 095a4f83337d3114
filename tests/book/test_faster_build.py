"""A book that all cores build, and one that is built again in part, is the book of one process, byte for byte.

Each build is a process of its own, as it is for a reader: what one leaves in memory must not help the next.
"""

import subprocess
import sys

import pytest
from helpers import small_book
from helpers.small_book import code, markdown

CHAPTERS = [f"{number:02}-chapter" for number in range(1, 8)]
BUILD = (
    "import sys, pathlib\n"
    "from helpers import small_book\n"
    "small_book.EXTENSIONS += sys.argv[2:]\n"
    "sys.stderr.write(small_book.build(pathlib.Path(sys.argv[1])))"
)


def build(folder, *extensions):
    """The warnings of a build, sorted."""
    done = subprocess.run(
        [sys.executable, "-c", BUILD, folder, *extensions],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path)},
        timeout=3600,  # a process that waits for another for ever; no build is so slow
    )
    assert done.returncode == 0, done.stderr
    return sorted(done.stderr.split("\n"))


def built_files(folder):
    """What is built, by name. Pictures and scripts of the theme are the same in any build."""
    found = folder / "_build" / "html"
    return {
        path.relative_to(found).as_posix(): path.read_bytes()
        for path in found.rglob("*")
        if path.suffix in (".html", ".js", ".css", ".inv") and "tree" not in path.relative_to(found).parts
    }


def chapter(folder, name, text=""):
    """A page with a title that has a formula, an equation, a claim, a check, a citation, and a term."""
    number = name[:2]
    words = (
        f"Depth {number} is one thing. {{claim}}`{number}-a` By Ba {{cite:t}}`ba2016layer`, see {{term}}`Norm`.\n\n"
        f"$$ a_{{{number}}} = b $$ (eq-{number})\n\n{text}\n\n"
        ":::{quick-check} one\n\nWhat?\n\n- [ ] A\n  - It is not.\n- [x] $b$\n  - It is.\n- [ ] C\n  - Is not.\n:::\n"
    )
    cell = code(source="assert True", tags=[f"claim:{number}-a", "claim:01-shared"])
    small_book.notebook(folder, markdown(f"## On $x_{{{number}}}$\n\n{words}"), cell, name=name)


def make(folder):
    folder.mkdir()
    (folder / "refs.bib").write_text("@misc{ba2016layer,\n author = {Ba, A}, title = {T}, year = {2016}}\n", "utf-8")
    for name in CHAPTERS:
        chapter(folder, name, "All share this. {claim}`01-shared`" if name == CHAPTERS[0] else "")
    (folder / "last.md").write_text(
        "# Last\n\n```{claims}\n```\n\n```{key-equation} eq-03\n```\n\n```{bibliography}\n```\n",
        "utf-8",
    )
    (folder / "words.md").write_text("# Words\n\n```{glossary}\nNorm\n  A size.\n```\n", "utf-8")
    toc = "\n".join(f"notebooks/{name}" for name in CHAPTERS)
    small_book.page(folder, f"```{{toctree}}\n{toc}\nlast\nwords\n```")
    return folder


def same(one, other):
    """Names of the files in which two books differ."""
    one, other = built_files(one), built_files(other)
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    folder = make(tmp_path_factory.mktemp("fast") / "book")
    assert build(folder, "subnorm_book.output.faster_build") == [""]
    return folder


def test_all_cores_build_the_book_of_one(book, tmp_path):
    alone = make(tmp_path / "alone")
    assert build(alone) == [""]
    assert same(book, alone) == []
    assert b"term-Norm" in built_files(book)["searchindex.js"]


def test_a_changed_page_gives_the_book_of_a_build_from_nothing(book, tmp_path):
    for folder in (book, make(tmp_path / "new")):
        more = "$$ c = d $$ (eq-more)\n\nAll share this. {claim}`03-more bib:ba2016layer`"
        chapter(folder, CHAPTERS[2], more)
        assert build(folder, "subnorm_book.output.faster_build") == [""]
    assert same(book, tmp_path / "new") == []


def test_faults_are_heard_from_all_processes_in_every_build(tmp_path):
    book = make(tmp_path / "book")
    for name in CHAPTERS:
        chapter(book, name, r"Some $\nosuch$, {val}`99:slope` and {claim}`00-none`.")
    for found in (build(book, "subnorm_book.output.faster_build"), build(book, "subnorm_book.output.faster_build")):
        for name in CHAPTERS:
            for fault in (r"Undefined control sequence: \nosuch", "0 notebooks are named notebooks/99-"):
                assert sum(name in line and fault in line for line in found) == 1, (name, fault)
        assert sum("claim 00-none" in line for line in found) == len(CHAPTERS)
