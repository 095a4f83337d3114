"""In a sheet, every link into the course leads to a page and a section that are there: in a checkout, and in a zip.

nbgrader hands out no notebook but the sheet, so there a link is its words.
"""

import re
import zipfile

import pytest
from subnorm_book.notebook_text import slug

from subnorm_classroom.reports.beliefs import headings
from subnorm_classroom.sheets import class_sheets, packing, release
from subnorm_classroom.sheets.chapters import FOLDER, beside_chapters, chapters_of
from subnorm_classroom.sheets.student_sheet import ROOT, as_notebook, read_notebook, source_of
from subnorm_lab import checks

SETS = [name for name in checks.SETS if re.fullmatch(r"ex\d\d", name)]
LINK = re.compile(r"\[[^][]+\]\((?!https?:)([^()\s#]*)(?:#([^()\s]*))?\)")
WITH_VARIANTS = next(name for name in SETS if any(exercise.variants for exercise in checks.SETS[name]))


def links(notebook):
    """(path, section) of each link in a notebook's text that does not leave the course."""
    texts = [cell["source"] for cell in read_notebook(notebook)["cells"] if cell["cell_type"] == "markdown"]
    return [found.groups("") for text in texts for found in LINK.finditer(re.sub(r"`[^`]*`", "", text))]


def dead(notebook):
    """The links that lead nowhere."""
    found = []
    for path, section in links(notebook):
        page = (notebook.parent / path).resolve() if path else notebook
        if not page.is_file() or (section and slug(section) not in headings(page)):
            found.append(f"{path}#{section}" if section else path)
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """What is handed out: the zips, unpacked; a course for nbgrader; the own sheets of a class."""
    root = tmp_path_factory.mktemp("made")
    (root / "notebooks").symlink_to(ROOT / "notebooks")
    (root / "constraints.txt").touch()
    (root / "class.txt").write_text("Ada\n")
    with pytest.MonkeyPatch.context() as patch:
        for module in (release, class_sheets):
            patch.setattr(module, "ROOT", root)
        patch.setattr(release._files, "write", lambda path, content: _write(root, path, content))
        patch.setattr(packing, "wheel_of", lambda root: ("subnorm.whl", b""))
        assert release.release(SETS, nbgrader=root / "course") == 0
        assert class_sheets.hand_out(WITH_VARIANTS, root / "class.txt") == 0
    for path in root.glob("dist/*.zip"):
        with zipfile.ZipFile(path) as archive:
            archive.extractall(root / path.stem)
    return root


def _write(root, path, content):
    """Write what is below a folder, and nothing else."""
    if path.is_relative_to(root):
        path.write_bytes(content.encode() if isinstance(content, str) else content)


@pytest.mark.parametrize("name", SETS)
def test_every_link_of_a_sheet_leads_to_a_section(made, name):
    sheet = source_of(name).parent / "student" / source_of(name).name
    for path in (sheet, made / name / name / sheet.name):
        assert len(links(path)) > len(checks.SETS[name]), path  # each exercise names its chapter
        assert not dead(path), path
    chapters = sorted((made / name / name / FOLDER).iterdir())
    assert chapters
    assert not [link for chapter in chapters for link in dead(chapter)]
    assert not links(made / "course/source" / name / sheet.name)


def test_an_own_sheet_finds_its_chapters_in_the_zip_for_all(made):
    (sheet,) = made.glob(f"dist/{WITH_VARIANTS}-variants/Ada/*.ipynb")
    folder = made / f"{WITH_VARIANTS}-install" / WITH_VARIANTS
    there = sheet.rename(folder / sheet.name)  # as the page on how to work says
    assert len(links(there)) > len(checks.SETS[WITH_VARIANTS])
    assert not dead(there)


def book(*texts):
    cells = [{"cell_type": "markdown", "id": str(k), "metadata": {}, "source": text} for k, text in enumerate(texts)]
    return as_notebook({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


@pytest.mark.parametrize(
    ("link", "lost"),
    [
        ("chapters/a.ipynb", []),
        ("chapters/a.ipynb#one-two", []),
        ("#here", []),
        ("https://a.b/c#d", []),
        ("chapters/b.ipynb", ["chapters/b.ipynb"]),
        ("chapters/a.ipynb#three", ["chapters/a.ipynb#three"]),
        ("#there", ["#there"]),
    ],
)
def test_a_link_that_leads_nowhere_is_found(tmp_path, link, lost):
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "a.ipynb").write_text(book("# A", "## One two"))
    sheet = tmp_path / "sheet.ipynb"
    sheet.write_text(book("# Here", f"See [this\n  page]({link})."))
    assert dead(sheet) == lost


def test_a_chapter_in_the_zip_keeps_its_links_to_others_there(tmp_path):
    (tmp_path / "notebooks").mkdir()
    texts = "See [B](b.ipynb#b), [C](c.ipynb), [myths](../book/myths.md), [here](#a), [paper](https://a.b).", "# B"
    for name, text in zip("ab", texts, strict=True):
        (tmp_path / "notebooks" / f"{name}.ipynb").write_text(book(text))
    sheet = book("[A](../../a.ipynb), [B](../../b.ipynb#b), [myths](../../../book/myths.md)")
    files = chapters_of(tmp_path, sheet)
    assert list(files) == ["chapters/a.ipynb", "chapters/b.ipynb"]
    wanted = "See [B](b.ipynb#b), *C*, *myths*, [here](#a), [paper](https://a.b)."
    assert files["chapters/a.ipynb"].decode() == book(wanted)
    wanted = "[A](chapters/a.ipynb), [B](chapters/b.ipynb#b), [myths](../../../book/myths.md)"
    assert beside_chapters(sheet).decode() == book(wanted)
