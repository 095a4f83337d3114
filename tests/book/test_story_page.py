"""The page of the listing: its line numbers, and the zip from which it runs. And the story on the first page."""

import base64
import json
import re
import shutil
import subprocess
import sys
import zipfile

import pytest
from bs4 import BeautifulSoup
from helpers.built import up_to_date
from helpers.small_book import build, html, page
from subnorm_book.in_page.story_page import FILES, LISTING
from subnorm_book.teaching.retold import FOLDER, LABELS, LICENCE, PARTS, RECORD, at_a_word, marked

from subnorm_lab.stories import files as story_files
from tools import checkout

CODE = (checkout.ROOT / LISTING).read_text("utf-8")


@pytest.fixture(scope="module")
def story():
    """The built page."""
    assert up_to_date()
    return BeautifulSoup((checkout.PAGES / "book" / "story.html").read_text("utf-8"), "html.parser").article


@pytest.fixture
def book(tmp_path):
    """A small book with the files that the two directives read."""
    for file in (*FILES, RECORD):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(checkout.ROOT / file, tmp_path / file)
    return tmp_path


def test_the_download_runs(story, tmp_path):
    (link,) = story.select("a[download]")
    with zipfile.ZipFile(checkout.PAGES / "book" / link["href"]) as archive:
        assert archive.namelist() == [f"story/{file.name}" for file in FILES]
        archive.extractall(tmp_path)
    for file in FILES:
        assert (tmp_path / "story" / file.name).read_bytes() == (checkout.ROOT / file).read_bytes()
    run = [sys.executable, "-I", tmp_path / "story" / "story.py"]
    told = subprocess.run([*run, "The capital of France is"], capture_output=True, encoding="utf-8", check=True)
    assert told.stdout.startswith("The capital of France is a big, red ball.")
    assert 'it continues "The capital of France is" with "a big, red ball."' in story.text.translate(
        {0x201C: '"', 0x201D: '"'}
    )


def test_the_page_shows_the_listing_and_what_it_prints(story):
    shown = story.select_one(".story pre")
    for number in shown.select(".linenos"):
        assert number["id"] == f"line-{number.text.strip()}"
        number.extract()
    assert shown.text.strip() == CODE.strip()
    assert story.select_one(".told pre").text.strip() == story_files.published()[0]


def first_words(final, count=40):
    """What the listing tells with another expression for its final norm."""
    norm = "rms_norm(x, final_gain)"
    assert CODE.count(norm) == 1
    listing = {"__name__": "story"}
    exec(compile(CODE.replace(norm, final), LISTING, "exec"), listing)
    data = checkout.ROOT / "subnorm_lab" / "stories" / "data"
    pieces, scores = listing["read_pieces"](data / "tok512.bin")
    tokens = listing["encode"]("", pieces, scores)
    story = listing["tell"](listing["read_model"](data / "stories260K.bin"), tokens, count)
    return b"".join(pieces[token] for token in story).decode().split()[:-1]  # the last one may be half a word


def test_what_the_page_says_of_the_final_norm():
    trained = first_words("rms_norm(x, final_gain)")
    assert first_words("(final_gain * x)") == trained
    gone = first_words("x")
    changes = next(k for k, (a, b) in enumerate(zip(trained, gone, strict=False), 1) if a != b)
    words = (checkout.ROOT / "book" / "story.md").read_text("utf-8")
    assert f"Take it away, and the story changes at its {changes}th word." in words
    assert "Keep the gain, as `(final_gain * x)`, and this listing prints the same story" in words


def test_a_remark_names_the_line_that_it_is_about(book):
    page(book, "```{story}\n```\n\nSee {line}`def block` and {line}`import numpy`.")
    assert build(book) == ""
    lines = CODE.split("\n")
    found = re.findall(r'href="#line-(\d+)">line (\d+)</a>', html(book))
    assert [lines[int(link) - 1] for link, _ in found] == ["def block(x, w, past):", "import numpy as np"]
    assert all(link == number for link, number in found)
    assert zipfile.ZipFile(book / "_build" / "html" / "index.zip").testzip() is None


@pytest.mark.parametrize(("words", "fault"), [("no such line", "0 lines"), ("def ", r"\d+ lines")])
def test_words_that_are_not_in_one_line_are_a_warning_in_every_build(book, words, fault):
    page(book, f"{{line}}`{words}`")
    for _ in range(2):
        assert re.search(f"{fault} of story.py contain these words; there must be one", build(book))


def switch(told):
    return ":::{retold}\n" + "\n\n".join(f"{name}\n: A note on it." for name in told) + "\n:::"


def test_both_stories_are_on_the_page_and_the_others_wait(book):
    told = json.loads((book / RECORD).read_text("utf-8"))["told"]
    trained, *cuts = told
    page(book, switch(cuts))
    assert build(book) == ""
    figure = BeautifulSoup(html(book), "html.parser").figure
    shown = [at_a_word(model["story"]) for model in told.values()]
    assert [text.text for text in figure.select(".retold-text")] == shown
    assert [label.text.strip() for label in figure.select("fieldset label")] == [LABELS[name] for name in cuts]
    titles = [name.find(string=True).strip() for name in figure.select(".retold-name")]
    assert titles == [trained, *(LABELS[name] for name in cuts)]
    losses = [link.text for link in figure.select(".retold-name a")]
    assert losses == [f"loss {model['loss']['mean']:.2f} nats" for model in told.values()]
    for parts in (figure.select(".retold-cuts > *"), figure.select(".retold-notes > *")):
        assert [part.get("class") for part in parts] == [["chosen"]] + [None] * (len(cuts) - 1)


@pytest.mark.parametrize(
    ("story", "shown"),
    [
        ("She was sad.", "She was sad. …"),
        ('She said, "Go!"', 'She said, "Go!" …'),
        ("She saw a big, red bal", "She saw a big, red …"),
        ('She was sad.\n"Ok', "She was sad. …"),
        ("  xxxxxxrererere\n", "  xxxxxxrererere…"),
    ],
)
def test_a_story_ends_at_a_word(story, shown):
    assert at_a_word(story) == shown


def test_words_that_the_trained_model_does_not_have_there_are_marked(book):
    assert (
        marked("a big, <b> ball here now", "a big, red ball")
        == "a big, <mark>&lt;b&gt;</mark> ball <mark>here now</mark>"
    )
    told = json.loads((book / RECORD).read_text("utf-8"))["told"]
    whole = told["as trained"]["story"]
    assert marked(whole, whole) == whole.replace("<", "&lt;")
    cut = told["without one skip"]["story"]
    assert marked(cut, whole) == f"<mark>{cut}</mark>"


def test_the_table_of_losses_has_the_numbers_of_the_record(book):
    record = json.loads((book / RECORD).read_text("utf-8"))
    page(book, "```{retold-loss}\n```")
    assert build(book) == ""
    rows = [
        [cell.text for cell in row.select("td")] for row in BeautifulSoup(html(book), "html.parser").select("tbody tr")
    ]
    told = [
        (LABELS.get(name, name), *(f"{model['loss'][key]:.2f}" for key in ("mean", "min", "max")))
        for name, model in record["told"].items()
    ]
    assert [(row[0], row[1], *row[2].split("\N{NO-BREAK SPACE}to\N{NO-BREAK SPACE}")) for row in rows[:-1]] == told
    assert [row[3] for row in rows] == ["3.0", "5,300", "3.6", "3.3", "100", "3.5", "860", "512"]
    assert rows[-1][:2] == ["guessing", "6.24"]


def test_a_new_record_is_read(book):
    _, *cuts = json.loads((book / RECORD).read_text("utf-8"))["told"]
    page(book, switch(cuts))
    assert build(book) == ""
    (book / RECORD).write_text((book / RECORD).read_text("utf-8").replace("a big, red ball", "a <small> ball"), "utf-8")
    assert build(book) == ""
    assert "a &lt;small&gt; ball" in html(book)


def test_a_model_without_its_note_is_a_warning_in_every_build(book):
    _, *cuts = json.loads((book / RECORD).read_text("utf-8"))["told"]
    page(book, switch(cuts[1:]))
    for _ in range(2):
        assert "it must explain the models ['without one skip', " in build(book)


def test_the_scripts_carry_the_weights_and_tokens_of_the_files(book):
    page(book, switch(list(json.loads((book / RECORD).read_text("utf-8"))["told"])[1:]))
    assert build(book) == ""
    folder = book / "_build" / "html" / FOLDER
    texts = [
        re.fullmatch(r'subnormStories\[\d\] = "(.*)";\n', (folder / f"{k}.js").read_text("utf-8"))[1]
        for k in range(PARTS)
    ]
    files = [(story_files.DATA / name).read_bytes() for name in story_files.HASHES]
    assert base64.b64decode("".join(texts)) == files[0][28 : 28 + 4 * 260_032] + files[1]
    assert (folder / LICENCE).read_bytes() == (story_files.DATA / LICENCE).read_bytes()
    size = sum(path.stat().st_size for path in folder.glob("*.js"))
    assert f"loads {size / 1e6:.1f} MB</button>" in html(book)
