"""The ledger of claims, on a three-page book: its contents, and each fault in the first build and in the next."""

import json

import pytest
from bs4 import BeautifulSoup
from helpers import small_book
from helpers.small_book import build, code, html, markdown, page

SOURCE = "assert 1 + 1 == 2"
CLAIM = "Depth is one thing. Adding $x$ changes nothing. {claim}`03-adds-nothing`"
PAGES = ["index", "other", "notebooks/03-norms"]
TEST = "test:tests/test_norms.py::test_unit"


def chapter(folder, *tags, source=SOURCE, text=CLAIM):
    small_book.notebook(folder, markdown(text), code(source=source, tags=tags))


@pytest.fixture
def book(tmp_path):
    """A folder with a test, a reference, a notebook with one supported claim, and the ledger."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_norms.py").write_text("def test_unit():\n    pass\n", "utf-8")
    (tmp_path / "refs.bib").write_text("@misc{ba2016layer,\n author = {Ba, A}, title = {T}, year = {2016}}\n", "utf-8")
    (tmp_path / "claims.md").write_text("# Claims\n\n```{claims}\n```\n\n```{bibliography}\n```\n", "utf-8")
    chapter(tmp_path, "claim:03-adds-nothing")
    write(tmp_path, "")
    return tmp_path


def write(folder, text):
    page(folder, text + "\n\n```{toctree}\nnotebooks/03-norms\nclaims\n```")


def rows(folder):
    soup = BeautifulSoup(html(folder, "claims"), "html.parser")
    return {item["id"]: item for item in soup.select("ul.ledger > li")}


def test_the_ledger_says_the_sentence_and_links_all_ways(book):
    assert build(book) == ""
    (row,) = rows(book).values()
    assert row["id"] == "row-03-adds-nothing"
    said, support = row.find_all("p")
    assert said.text.startswith("Adding ")
    assert said.text.endswith(" changes nothing.")
    assert said.select(".katex")
    assert [a["href"] for a in support.find_all("a")] == [
        "notebooks/03-norms.html#claim-03-adds-nothing",
        "notebooks/03-norms.html#cell-2",
    ]
    assert 'changes <span class="glued">nothing.<sup' in html(book, "notebooks/03-norms")
    assert '" id="claim-03-adds-nothing">\u00a0<a' in html(book, "notebooks/03-norms")  # paper hides it with the mark
    norms = BeautifulSoup(html(book, "notebooks/03-norms"), "html.parser")
    mark = norms.find("sup", id="claim-03-adds-nothing").a
    assert (mark.text, mark["href"]) == ("computed", "../claims.html#row-03-adds-nothing")
    assert norms.find(id="cell-2").select_one("p.supports a")["href"] == "#claim-03-adds-nothing"


def test_a_mark_comes_after_the_stop_that_follows_it(book):
    two = "It is {claim}`a-one TEST`, too {claim}`a-two TEST` {claim}`a-three TEST`."
    write(book, two.replace("TEST", TEST))
    assert build(book) == ""
    text = BeautifulSoup(html(book), "html.parser").find(id="claim-a-one").find_parent("p").text
    assert text.replace("\u00a0", " ") == "It is, tested too tested tested."


def test_other_supports(book):
    write(
        book,
        f"Rows have unit size. {{claim}}`a-unit {TEST}` By Ba {{cite}}`ba2016layer`. "
        "{claim}`a-ba bib:ba2016layer`\n\n"
        "Both. {claim}`a-both claim:a-unit claim:a-ba`",
    )
    assert build(book) == ""
    assert [row.find("p").text for row in rows(book).values()][:3] == ["Rows have unit size.", "By Ba [Ba16].", "Both."]
    marks = [mark.text.strip() for mark in BeautifulSoup(html(book), "html.parser").select("sup.claim")]
    assert marks == ["tested", "cited", "tested, cited"]
    assert rows(book)["row-a-ba"].select(".bibtex-citation a")


def test_the_card_of_a_mark_says_in_words_what_was_checked_and_follows_it(book):
    (book / "other.md").write_text(
        f"# Other\n\nIt has unit size {{cite}}`ba2016layer`. {{claim}}`a-unit {TEST} bib:ba2016layer`\n", "utf-8"
    )
    write(book, "So $\\sqrt 2$. {claim}`a-so claim:a-unit`\n\n```{toctree}\nother\n```")
    assert build(book) == ""
    cards = [BeautifulSoup(html(book, name), "html.parser").select_one("sup.claim a")["title"] for name in PAGES]
    assert cards == [
        "Checked: this sentence · Rests on another claim, tested, cited: “It has unit size.”",
        "Checked: “It has unit size.” · Tested by test_norms.py::test_unit · Cited: Ba (2016)",
        "Checked: “Adding x changes nothing.” · Computed by a cell of 03-norms",  # no TeX
    ]
    other = (book / "other.md").read_text("utf-8")
    (book / "other.md").write_text(other.replace("It has", "Each has"), "utf-8")
    assert build(book) == ""
    assert "“Each has unit size.”" in html(book, "index")


def test_the_whole_bullet_and_the_whole_row_are_said(book):
    write(
        book,
        f"- One thing.\n  Another thing: $x$. {{claim}}`a-bullet {TEST}`\n\n"
        f"| | LN | BN |\n|---|---|---|\n| axis | last | first {{claim}}`a-row {TEST}` |\n",
    )
    assert build(book) == ""
    said = [row.find("p").text for row in rows(book).values()][:2]
    assert said[0].replace("\n", " ").startswith("One thing. Another thing: ")
    assert said[1] == "axis · LN: last · BN: first"


def test_links_in_a_sentence_lead_on_from_the_ledger(book):
    text = "In {doc}`03-norms`, by {eq}`eq-sum`, it is so. {claim}`03-adds-nothing`\n\n$$ a = b $$ (eq-sum)"
    chapter(book, "claim:03-adds-nothing", text=text)
    assert build(book) == ""
    links = rows(book)["row-03-adds-nothing"].find("p").find_all("a")
    assert [a["href"] for a in links] == ["notebooks/03-norms.html", "notebooks/03-norms.html#equation-eq-sum"]


def test_two_claims_for_one_sentence_and_one_after_the_other(book):
    write(book, f"First. Sa\nme: so. {{claim}}`a-one {TEST}` {{claim}}`a-two {TEST}` Next. {{claim}}`a-three {TEST}`")
    assert build(book) == ""
    assert [row.find("p").text for row in rows(book).values()][:3] == ["Sa\nme: so.", "Sa\nme: so.", "Next."]


def test_the_ledger_follows_an_edited_sentence(book):
    build(book)
    chapter(book, "claim:03-adds-nothing", text="Adding zero changes nothing. {claim}`03-adds-nothing`")
    assert build(book) == ""
    assert rows(book)["row-03-adds-nothing"].find("p").text == "Adding zero changes nothing."


def test_a_mark_follows_the_support_on_another_page(book):
    """This needs a page other than the root, which Sphinx writes whenever it has read a page below it."""
    (book / "other.md").write_text("# Other\n\nSo it is. {claim}`a-b claim:03-adds-nothing`\n", "utf-8")
    write(book, "```{toctree}\nother\n```")
    assert build(book) == ""
    assert mark(book) == "computed"
    chapter(book, text=CLAIM.replace("nothing`", f"nothing {TEST}`"))
    assert build(book) == ""
    assert mark(book) == "tested"


READ = "import json\n\nrecord = json.load(open('tests/warmup.json'))\n"
RECORD = "record:tests/warmup.json"


@pytest.fixture
def with_record(book):
    record(book)
    chapter(book, "claim:03-adds-nothing", source=READ + "assert record['loss'] < 1", text=recorded())
    return book


def record(folder, **changes):
    content = {"command": "python -m warmup", "loss": 0.5} | changes
    (folder / "tests/warmup.json").write_text(json.dumps(content), "utf-8")


def recorded(pointer=RECORD):
    return CLAIM.replace("nothing`", f"nothing {pointer}`")


def test_a_recorded_claim_says_so_and_how_to_measure_it_again(with_record):
    assert build(with_record) == ""
    norms = BeautifulSoup(html(with_record, "notebooks/03-norms"), "html.parser")
    assert norms.find("sup", id="claim-03-adds-nothing").a.text == "recorded"
    said = rows(with_record)["row-03-adds-nothing"].find_all("p")[1]
    assert said.text == (
        "03-adds-nothing · read by a cell of 03-norms · recorded in warmup.json, measured again by python -m warmup"
    )


def test_of_several_records_the_newest_is_named(with_record):
    older = {"date": "2025-01-01", "command": "python -m older"}
    (with_record / "tests/warmups.json").write_text(json.dumps(older), "utf-8")
    record(with_record, date="2026-01-01", command="python -m newer")
    source = READ + "assert record['loss'] < 1"
    chapter(with_record, "claim:03-adds-nothing", source=source, text=recorded("record:tests/warm*.json"))
    assert build(with_record) == ""
    said = rows(with_record)["row-03-adds-nothing"].find_all("p")[1]
    assert said.text.endswith("recorded in warmup.json, measured again by python -m newer")


def test_a_spot_check_measures_too(with_record):
    source = READ + "assert abs(record['loss'] - 0.5) < 1e-3"
    chapter(with_record, "claim:03-adds-nothing", "spot-check", source=source, text=recorded())
    assert build(with_record) == ""
    norms = BeautifulSoup(html(with_record, "notebooks/03-norms"), "html.parser")
    assert norms.find("sup", id="claim-03-adds-nothing").a.text == "computed, recorded"


def test_another_cell_measures_too(with_record):
    reads = code(source=READ + "assert record['loss'] < 1", tags=["claim:03-adds-nothing"])
    cells = [reads, code(source=SOURCE, tags=["claim:03-adds-nothing"]) | {"id": "c"}]
    small_book.notebook(with_record, markdown(recorded()), *cells)
    assert build(with_record) == ""
    norms = BeautifulSoup(html(with_record, "notebooks/03-norms"), "html.parser")
    assert norms.find("sup", id="claim-03-adds-nothing").a.text == "computed, recorded"


def test_the_ledger_counts_every_kind(with_record):
    write(
        with_record,
        f"Rows. {{claim}}`a-unit {TEST}` By Ba {{cite}}`ba2016layer`. {{claim}}`a-ba bib:ba2016layer {TEST}`",
    )
    assert build(with_record) == ""
    count = BeautifulSoup(html(with_record, "claims"), "html.parser").select_one("p.count").text
    assert count == "3 claims: 0 computed, 1 recorded, 2 tested, 1 cited; 1 of them in more than one way."


RECORDS = {
    "record gone": ({"text": recorded("record:tests/gone.json")}, "record:tests/gone.json, which does not exist"),
    "no command": ({"command": ""}, "rests on record:tests/warmup.json, which has no command"),
    "not named": ({"text": CLAIM}, "claim 03-adds-nothing rests on a stored measurement; name it with record:"),
    "no cell": ({"source": SOURCE}, "claim 03-adds-nothing names a record, but no cell asserts anything about it"),
    "nothing to check": ({"source": SOURCE, "tags": ["spot-check"]}, "tagged spot-check that reads no record"),
}


@pytest.mark.parametrize("fault", RECORDS)
def test_a_faulty_record_warns_in_every_build(with_record, fault):
    change, message = RECORDS[fault]
    record(with_record, command=change.get("command", "python -m warmup"))
    source = change.get("source", READ + "assert record['loss'] < 1")
    chapter(
        with_record,
        "claim:03-adds-nothing",
        *change.get("tags", []),
        source=source,
        text=change.get("text", recorded()),
    )
    assert message in build(with_record)
    assert message in build(with_record)


def mark(folder):
    return BeautifulSoup(html(folder, "other"), "html.parser").select_one("sup.claim").text.strip()


FAULTS = {
    "no support": ("No. {claim}`a-b`", "claim a-b has no support"),
    "test renamed": ("No. {claim}`a-b test:tests/test_norms.py::test_gone`", "test_gone, which does not exist"),
    "file gone": ("No. {claim}`a-b test:tests/test_gone.py::test_unit`", "which does not exist"),
    "reference gone": ("No. {claim}`a-b bib:gone2016`", "rests on bib:gone2016, which does not exist"),
    "claim gone": ("No. {claim}`a-b claim:a-c`", "rests on claim:a-c, which does not exist"),
    "kind unknown": ("No. {claim}`a-b faith:yes`", "rests on faith:yes, which does not exist"),
    "said twice": ("No. {claim}`03-adds-nothing`", "claim 03-adds-nothing is stated twice"),
    "not an id": (f"No. {{claim}}`Unit {TEST}`", "claim 'Unit' is not an id"),
    "a circle": ("No. {claim}`a-b claim:a-c` No. {claim}`a-c claim:a-b`", "rests only on claims that rest on it"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_warns_in_every_build(book, fault):
    text, message = FAULTS[fault]
    write(book, text)
    assert message in build(book)
    assert message in build(book)


CELLS = {
    "claimed by no page": ({"tags": ["claim:03-adds-nothing", "claim:03-gone"]}, "03-gone is supported by a cell, but"),
    "asserts nothing": ({"source": "1 + 1"}, "rests on a cell that asserts nothing"),
    "not compared": ({"tags": ["claim:03-adds-nothing", "nbval-ignore-output"]}, "whose output is not compared"),
    "not on the page": ({"tags": ["claim:03-adds-nothing", "remove-cell"]}, "claim 03-adds-nothing has no support"),
}


PROOF = "def holds():\n    assert 1 + 1 == 2\n\n\ndef prove():\n    # of all\n    holds()"


def test_a_proof_may_be_a_function_of_the_chapter_and_the_page_shows_and_follows_it(book):
    called = code(source="chapter.prove()", tags=["checked", "claim:03-adds-nothing"])
    small_book.notebook(book, small_book.module(book, PROOF), markdown(CLAIM), called)
    assert build(book) == ""
    cell = BeautifulSoup(html(book, "notebooks/03-norms"), "html.parser").find(id="cell-3")
    assert cell.pre.text.strip() == f"chapter.prove()\n\n\n{PROOF}"
    small_book.module(book, PROOF.replace("assert", "return"))
    assert "claim 03-adds-nothing rests on a cell that asserts nothing" in build(book)


def test_a_sentence_that_only_announces_a_proof_folds_with_it(book):
    called = code(source="chapter.prove()", tags=["checked", "claim:03-adds-nothing"])
    more = [markdown("A proof checks two things. The first is new."), called]
    announced = markdown(f"{CLAIM}\n\nA proof checks both answers.")
    small_book.notebook(book, small_book.module(book, PROOF), announced, called, *more)
    assert build(book) == ""
    page = BeautifulSoup(html(book, "notebooks/03-norms"), "html.parser")
    assert [text.text for text in page.select("p.of-proof")] == ["A proof checks both answers."]


@pytest.mark.parametrize("fault", CELLS)
def test_a_faulty_cell_warns_in_every_build(book, fault):
    change, message = CELLS[fault]
    chapter(book, *change.get("tags", ["claim:03-adds-nothing"]), source=change.get("source", SOURCE))
    assert message in build(book)
    assert message in build(book)
