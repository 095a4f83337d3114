"""The book on paper: Chromium prints its pages, and pypdf binds them.

Chromium gives each printed page its bookmarks, its destinations and the tags that a screen reader needs. Bound, the
bookmarks follow the table of contents, a link to another page of the same file leads there, and the paper is numbered.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from posixpath import join, normpath
from typing import Any
from urllib.parse import unquote, urldefrag

import yaml  # type: ignore[import-untyped]
from playwright.sync_api import Route, ViewportSize, sync_playwright
from pypdf import PageObject, PdfReader, PdfWriter
from pypdf.generic import (
    ArrayObject,
    BooleanObject,
    DecodedStreamObject,
    DictionaryObject,
    Fit,
    FloatObject,
    NameObject,
    NullObject,
    NumberObject,
    PdfObject,
    TextStringObject,
)

from tools import browser

# Where the printed pages say they come from. Nothing goes there: the files of the book answer, on any machine the same.
SITE = "https://book.invalid/"
A4_WITHIN_MARGINS: ViewportSize = {"width": 643, "height": 971}  # px
# `bind` numbers the sheets of the whole book.
NO_NUMBER = "@page { @bottom-right { content: none } }"
MARGIN = 17 / 25.4 * 72  # points, at both sides of a sheet
# Chromium keeps a place in a page as a destination only if the same page links to it.
READY = """async (places) => {
  document.documentElement.classList.add("print-all"); // with the second readings
  for (const place of places) {
    const link = document.createElement("a");
    link.href = `#${place}`;
    link.hidden = true;
    document.body.append(link);
  }
  for (const image of document.images) image.loading = "eager";
  // Where a picture has another drawing for paper, that of the screen is cancelled, and would fail to decode: wait for
  // the other, and then decode it.
  const loaded = (image) => image.complete || new Promise((done, fail) => {
    image.addEventListener("load", done, { once: true });
    image.addEventListener("error", fail, { once: true });
  });
  const shown = [...document.images].filter((image) => image.checkVisibility());
  await Promise.all(shown.map(loaded));
  await Promise.all(shown.map((image) => image.decode()));
  await document.fonts.ready;
}"""


@dataclass
class Entry:
    """An entry of the table of contents; a caption has no page."""

    title: str
    page: str = ""
    below: list["Entry"] = field(default_factory=list)

    def pages(self) -> Iterator[str]:
        if self.page:
            yield self.page
        for entry in self.below:
            yield from entry.pages()


def contents(toc: Path) -> list[Entry]:
    """The entries of _toc.yml; a title that it does not give is empty."""

    def entry(row: dict[str, Any]) -> Entry:
        return Entry(row.get("title", ""), row["file"], [entry(inner) for inner in row.get("sections", [])])

    given = yaml.safe_load(toc.read_text("utf-8"))
    parts = [Entry(part["caption"], "", [entry(row) for row in part["chapters"]]) for part in given["parts"]]
    return [Entry("", given["root"]), *parts]


def link_targets(folder: Path, names: Iterable[str]) -> dict[str, list[str]]:
    """For each page, the places in it to which the pages `names` link."""
    found: dict[str, set[str]] = defaultdict(set)
    for name in names:
        html = (folder / f"{name}.html").read_text("utf-8")
        for path, place in re.findall(r'href="([^":#]*\.html)#([^"]+)"', html):
            found[normpath(join(name, "..", path)).removesuffix(".html")].add(place)
    return {name: sorted(ids) for name, ids in found.items()}


def print_pages(folder: Path, names: list[str], out: Path) -> dict[str, Path]:
    """Print the pages `names` of the book in `folder`, each to a file of its own."""
    path = browser.chromium_path()
    if path is None:
        sys.exit(f"To print the book, this needs {browser.FIX}")
    wanted = link_targets(folder, names)
    found = {name: out / f"{name.replace('/', '-')}.pdf" for name in names}

    def answer(route: Route) -> None:
        file = folder / unquote(urldefrag(route.request.url).url.removeprefix(SITE).partition("?")[0])
        if file.is_file():
            route.fulfill(path=file)
        else:
            route.abort()

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=browser.OPTIONS)
        context = chromium.new_context(viewport=A4_WITHIN_MARGINS, reduced_motion="reduce")
        context.route("**", answer)
        page = context.new_page()
        for name, file in found.items():
            page.goto(f"{SITE}{name}.html")
            page.emulate_media(media="print")
            page.evaluate(READY, wanted.get(name, []))
            page.add_style_tag(content=NO_NUMBER)
            page.pdf(path=file, prefer_css_page_size=True, print_background=True, outline=True, tagged=True)
        chromium.close()
    return found


@dataclass
class Bookmark:
    """A bookmark: a place on a sheet, counted from 0, and the bookmarks below it."""

    title: str
    sheet: int
    left: float
    top: float
    below: list["Bookmark"]


def bind(entries: list[Entry], files: dict[str, Path], out: Path, title: str) -> int:
    """Bind the printed pages of `entries` to the file `out`; return its number of sheets."""
    writer = PdfWriter()
    sheets: dict[str, list[PageObject]] = {}  # of each page
    places: dict[str, dict[str, PdfObject]] = {}  # of each page: [sheet, /XYZ, left, top, zoom] of the places in it
    marks: dict[str, Bookmark] = {}
    tags = Tags(writer)
    for name in (page for entry in entries for page in entry.pages()):
        reader = PdfReader(files[name])
        first = len(writer.pages)
        sheets[name] = [writer.add_page(sheet) for sheet in reader.pages]
        tags.add(reader, sheets[name])
        named: Any = reader.root_object.get("/Dests", {})
        places[name] = {place.removeprefix("/"): to.clone(writer) for place, to in named.items()}
        at_top = [NullObject(), FloatObject(sheets[name][0].mediabox.top), NullObject()]  # as it is zoomed
        places[name][""] = ArrayObject([sheets[name][0].indirect_reference, NameObject("/XYZ"), *at_top])
        marks[name] = title_bookmark(reader, first)
    tags.join()
    for name, paper in sheets.items():
        for sheet in paper:
            redirect_links(sheet, name, places)
    number_sheets(writer)
    for entry in entries:
        add_bookmarks(writer, entry, marks, None)
    writer.root_object[NameObject("/Lang")] = TextStringObject("en")
    writer.metadata = {"/Title": title, "/Producer": "Chromium, pypdf"}  # no time: equal pages make equal files
    writer.compress_identical_objects(remove_duplicates=True, remove_unreferenced=True)
    writer.write(out)
    return len(writer.pages)


def redirect_links(sheet: PageObject, name: str, places: dict[str, dict[str, PdfObject]]) -> None:
    """Let the links on a sheet of the page `name` lead to their places; remove those to pages that are not bound."""
    kept = ArrayObject()
    for reference in sheet.get("/Annots", ()):
        link = reference.get_object()
        url = link["/A"]["/URI"] if "/A" in link else f"{SITE}{name}.html#{link['/Dest'].removeprefix('/')}"
        if url.startswith(SITE):
            link.pop("/A", None)
            path, place = urldefrag(url.removeprefix(SITE))
            there = places.get(path.removesuffix(".html"))
            if there is None:
                continue
            link[NameObject("/Dest")] = there.get(unquote(place), there[""])  # paper does not show all, as solutions
        kept.append(reference)
    sheet[NameObject("/Annots")] = kept


class Tags:
    """Joins the trees of tags. Each sheet and link finds its tags by a key, and a heading of a table has a name; both
    are counted anew."""

    def __init__(self, writer: PdfWriter) -> None:
        self.writer = writer
        self.documents, self.parents, self.named = ArrayObject(), ArrayObject(), ArrayObject()
        self.keys = 0

    def add(self, reader: PdfReader, sheets: list[PageObject]) -> None:
        """Bring the tags of a printed page, whose sheets are in the writer already."""
        tree: Any = reader.root_object["/StructTreeRoot"]
        for sheet, own in zip(sheets, reader.pages, strict=True):
            key: Any = own["/StructParents"]
            sheet[NameObject("/StructParents")] = NumberObject(key + self.keys)
            for link in (reference.get_object() for reference in sheet.get("/Annots", ())):
                link[NameObject("/StructParent")] = NumberObject(link["/StructParent"] + self.keys)
        tree = tree.clone(self.writer)
        document = tree["/K"]
        names = {}
        for k, (name, element) in enumerate(tree_items(tree.get("/IDTree"))):
            names[name] = TextStringObject(f"{len(self.documents):03}-{k:05}")
            element.get_object()[NameObject("/ID")] = names[name]
            self.named += [names[name], element]
        clear(tree.get("/IDTree"))
        todo = [document]
        while todo:
            element = todo.pop()
            for attributes in as_list(element.get("/A")):
                if "/Headers" in attributes:
                    attributes[NameObject("/Headers")] = ArrayObject(names[name] for name in attributes["/Headers"])
            todo += [child for child in as_list(element.get("/K")) if isinstance(child, DictionaryObject)]
        for key, elements in tree_items(tree["/ParentTree"]):
            self.parents += [NumberObject(key + self.keys), elements]
        self.keys += tree["/ParentTreeNextKey"]
        self.documents.append(document.indirect_reference)

    def join(self) -> None:
        """Give the writer the joined tree."""
        root, book = DictionaryObject(), DictionaryObject()
        top, whole = self.writer._add_object(root), self.writer._add_object(book)
        for document in self.documents:
            document.get_object().update({NameObject("/S"): NameObject("/Part"), NameObject("/P"): whole})
        book.update(
            {
                NameObject("/Type"): NameObject("/StructElem"),
                NameObject("/S"): NameObject("/Document"),
                NameObject("/P"): top,
                NameObject("/K"): self.documents,
            }
        )
        root.update(
            {
                NameObject("/Type"): NameObject("/StructTreeRoot"),
                NameObject("/K"): whole,
                NameObject("/ParentTree"): DictionaryObject({NameObject("/Nums"): self.parents}),
                NameObject("/ParentTreeNextKey"): NumberObject(self.keys),
                NameObject("/IDTree"): DictionaryObject({NameObject("/Names"): self.named}),
            }
        )
        self.writer.root_object[NameObject("/StructTreeRoot")] = top
        self.writer.root_object[NameObject("/MarkInfo")] = DictionaryObject(
            {NameObject("/Marked"): BooleanObject(True)}
        )


def tree_items(tree: Any) -> Iterator[tuple[Any, Any]]:
    """The keys and values of a number tree or a name tree."""
    if tree is None:
        return
    flat = tree.get("/Nums") or tree.get("/Names") or []
    yield from zip(flat[::2], flat[1::2], strict=True)
    for kid in tree.get("/Kids", ()):
        yield from tree_items(kid.get_object())


def clear(tree: Any) -> None:
    """Empty a tree that nothing points to any more: its names, counted by Chromium, are not the same in every run."""
    for kid in () if tree is None else tree.get("/Kids", ()):
        clear(kid.get_object())
    if tree is not None:
        tree.clear()


def as_list(value: Any) -> list[Any]:
    """An entry of a PDF that is one thing, a list of things or nothing, as a list."""
    value = value.get_object() if value is not None else []
    return [item.get_object() for item in value] if isinstance(value, list) else [value]


def number_sheets(writer: PdfWriter) -> None:
    """Write the number of each sheet at its foot, in line with the page's title there."""
    font = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
    helvetica = writer._add_object(DictionaryObject({NameObject(key): NameObject(name) for key, name in font.items()}))
    before = writer._add_object(content_stream("q"))  # Chromium leaves its scale behind
    for n, sheet in enumerate(writer.pages, 1):
        width, height = float(sheet.mediabox.width), float(sheet.mediabox.height)
        margin = MARGIN if width < height else MARGIN / 2  # the cheat sheet's are smaller
        left = width - margin - 4.17 * len(str(n))  # a digit of 7.5 points is 4.17 wide
        mark = f"Q /Artifact BMC BT /Number 7.5 Tf 0.35 g {left:.2f} {0.39 * margin:.2f} Td ({n}) Tj ET EMC"
        after = writer._add_object(content_stream(mark))
        sheet[NameObject("/Contents")] = ArrayObject([before, sheet.raw_get("/Contents"), after])
        resources: Any = sheet["/Resources"]
        fonts = DictionaryObject(resources.get("/Font", {}))
        fonts[NameObject("/Number")] = helvetica
        sheet[NameObject("/Resources")] = DictionaryObject(resources | {NameObject("/Font"): fonts})


def content_stream(commands: str) -> DecodedStreamObject:
    stream = DecodedStreamObject()
    stream.set_data(commands.encode())
    return stream


def title_bookmark(reader: PdfReader, first: int) -> Bookmark:
    """The bookmark of a printed page, which is bound from the sheet `first` on."""

    def marks(outline: list[Any]) -> list[Bookmark]:
        found: list[Bookmark] = []
        for item in outline:
            if isinstance(item, list):
                found[-1].below = marks(item)
            else:
                sheet = reader.get_destination_page_number(item) or 0
                found.append(Bookmark(str(item.title), first + sheet, float(item.left), float(item.top), []))
        return found

    mark, *others = marks(reader.outline)
    mark.below += others  # the cheat sheet has a title on each side
    mark.title = str(reader.metadata and reader.metadata.title).partition(" — ")[0]  # the bookmark lacks its blanks
    return mark


def add_bookmarks(writer: PdfWriter, entry: Entry, marks: dict[str, Bookmark], parent: Any) -> None:
    """The bookmark of an entry, closed: its headings and the entries below it."""

    def add(mark: Bookmark, parent: Any) -> Any:
        place = Fit.xyz(left=mark.left, top=mark.top)
        item = writer.add_outline_item(
            title=mark.title, page_number=mark.sheet, parent=parent, fit=place, is_open=False
        )
        for inner in mark.below:
            add(inner, item)
        return item

    first = marks[next(entry.pages())]
    own = first if entry.page else Bookmark("", first.sheet, first.left, first.top, [])
    item = add(replace(own, title=entry.title or own.title), parent)
    for inner in entry.below:
        add_bookmarks(writer, inner, marks, item)
