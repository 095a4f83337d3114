"""The book to take along: `python3 course.py pack`, which runs this in .venv after a build.

In `_pack` it leaves the book as one zip that opens offline, a PDF of each entry of the contents and of the whole book,
and `site`: the pages with links to these files, for a web server. A plain build has no such files, so no such links.
Everything is made in a folder of its own, and replaces the last pack when it is complete.
"""

import re
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

import yaml  # type: ignore[import-untyped]

from tools import checkout, paper

PACK = checkout.ROOT / "_pack"
NEXT = checkout.BUILD / "pack"  # what is being made, moved into place when it is complete
OLD = checkout.BUILD / "pack-old"
NAME = "subnorm-book"
START = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can hold: equal pages make equal files


def zip_pages(pages: Path, file: Path) -> None:
    """All files of the built book as one zip with one folder."""
    with zipfile.ZipFile(file, "w") as archive:
        for path in sorted(path for path in pages.rglob("*") if path.is_file()):
            info = zipfile.ZipInfo(f"{NAME}/{path.relative_to(pages).as_posix()}", START)
            info.external_attr = 0o644 << 16
            archive.writestr(info, path.read_bytes(), zipfile.ZIP_DEFLATED)


def print_and_bind(contents: list[paper.Entry], pages: Path, folder: Path, title: str) -> dict[str, Path]:
    """Print and bind the book and each entry of its contents; return the file of each page."""
    with tempfile.TemporaryDirectory() as scratch:
        files = paper.print_pages(pages, [page for entry in contents for page in entry.pages()], Path(scratch))
        paper.bind(contents, files, folder / f"{NAME}.pdf", title)
        (folder / "pdf").mkdir()
        found = {}
        for entry in [entry for part in contents for entry in (part.below or [part])]:
            file = folder / "pdf" / f"{PurePosixPath(entry.page).name}.pdf"
            if file.exists():
                sys.exit(f"Two entries of the contents would both be {file.name}: rename one")
            paper.bind([entry], files, file, f"{entry.title} — {title}" if entry.title else title)
            found.update(dict.fromkeys(entry.pages(), file))
    return found


def add_links(site: Path, root: str, files: dict[str, Path]) -> None:
    """Add the links to the pages: on the first one to the whole book, under the title of a chapter to its PDF."""
    size = {suffix: (site / f"{NAME}.{suffix}").stat().st_size / 1e6 for suffix in ("pdf", "zip")}
    whole = (
        '<section id="take-it-along"><h2>Take it along</h2><p>'
        f'<a href="../{NAME}.zip">All pages as a zip</a> ({size["zip"]:.0f} MB), to read offline: unpack it and open '
        f'<code>index.html</code>. <a href="../{NAME}.pdf">The book as a PDF</a> ({size["pdf"]:.0f} MB); '
        "every chapter has its own below its title.</p></section>"
    )
    insert(site / f"{root}.html", r"(?=</section>\s*</article>)", whole)
    for page, file in files.items():
        up = "../" * page.count("/")
        line = f' <a href="{up}pdf/{file.name}">PDF to print</a>'
        if page.startswith("notebooks/") and "exercises" not in page:
            insert(site / f"{page}.html", r'class="opening [^"]*">\s*<p>[^\0]*?(?=</p>)', line)


def insert(page: Path, place: str, html: str) -> None:
    """Insert HTML after the one place that matches a regular expression."""
    text, count = re.subn(place, lambda found: found[0] + html, page.read_text("utf-8"))
    if count != 1:
        sys.exit(f"{page.name} has {count} places for a link to a download; the rule in tools/pack.py wants one")
    page.write_text(text, "utf-8", newline="\n")


def pack(pages: Path, contents: list[paper.Entry], title: str) -> None:
    """Make everything anew; what is there stays until that is done."""
    for folder in (NEXT, OLD):
        shutil.rmtree(folder, ignore_errors=True)
    NEXT.mkdir(parents=True)
    zip_pages(pages, NEXT / f"{NAME}.zip")
    files = print_and_bind(contents, pages, NEXT, title)
    site = NEXT / "site"
    shutil.copytree(pages, site)
    for name in (f"{NAME}.zip", f"{NAME}.pdf"):
        shutil.copy(NEXT / name, site / name)
    shutil.copytree(NEXT / "pdf", site / "pdf")
    add_links(site, contents[0].page, files)
    if PACK.exists():
        PACK.rename(OLD)
    NEXT.rename(PACK)
    shutil.rmtree(OLD, ignore_errors=True)


def main() -> int:
    title = yaml.safe_load((checkout.ROOT / "_config.yml").read_text("utf-8"))["title"]
    print("Packing the book: minutes", flush=True)
    pack(checkout.PAGES, paper.contents(checkout.ROOT / "_toc.yml"), title)
    for file in sorted(
        path for path in PACK.rglob("*") if path.suffix in (".zip", ".pdf") and "site" not in path.parts
    ):
        print(f"{file.stat().st_size / 1e6:7.1f} MB  {file.relative_to(checkout.ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
