"""The line on the first page: the authors, the minutes of the chapters' own lines, and the repository."""

import shutil
import tomllib

import pytest
from helpers.small_book import build, html, page
from subnorm_book.teaching.byline import CITATION, hours

from tools import checkout

MINUTE = "word " * 200
CHAPTER = """# A page

:::{admonition} This chapter
**You will be able to**
- do it.

**You need** nothing.
:::

%s

{.second-reading}
## More

%s
"""


@pytest.fixture
def book(tmp_path):
    (tmp_path / "notebooks").mkdir()
    for file in (CITATION, "pyproject.toml"):
        shutil.copy(checkout.ROOT / file, tmp_path / file)
    page(tmp_path, "```{byline}\n```")
    return tmp_path


def chapter(folder, name, minutes, more=0):
    (folder / "notebooks" / f"{name}.md").write_text(CHAPTER % (MINUTE * minutes, MINUTE * more), "utf-8")


def test_it_names_the_authors_and_adds_up_the_minutes_in_every_build(book):
    chapter(book, "01-one", 59, 30)
    chapter(book, "01a-two", 44)
    build(book)
    assert "By the Subnorm authors. The chapters take 1 hour to read; with second readings and deep dives, 2¼" in html(
        book
    )
    chapter(book, "01-one", 89, 30)
    build(book)
    assert "The chapters take 1½ hours to read; with second readings and deep dives, 2¾" in html(book)


def test_without_an_address_there_is_no_link_and_with_one_there_is(book):
    build(book)
    assert "The repository" not in html(book)
    project = book / "pyproject.toml"
    lines = project.read_text("utf-8").replace("# Repository = ", "Repository = ")
    project.write_text(lines, "utf-8")
    address = tomllib.loads(lines)["project"]["urls"]["Repository"]
    build(book)
    assert f'href="{address}">The repository</a>' in html(book)


@pytest.mark.parametrize(("minutes", "said"), [(95, "1½ hours"), (100, "1¾ hours"), (29, "½ hour"), (480, "8 hours")])
def test_hours_are_rounded_to_a_quarter(minutes, said):
    assert hours(minutes) == said
