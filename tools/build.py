"""Build the book unless it is up to date; a build that fails or is cut off leaves the last good one. Standard library.

Sphinx (tools/book.py) works in `NEXT`, which is moved into place only after success.
"""

import json
import re
import shutil
import time

from tools import checkout, install

STATE = checkout.BUILD / "state"  # Sphinx's state from the last build without errors
BUILT = checkout.BUILD / "course.json"  # hashes of that build's inputs
NEXT = checkout.BUILD / "next"
DONE = NEXT / "course.json"  # exists from the end of a successful build until everything is in place
OLD = checkout.BUILD / "old"  # the previous pages, while they are being replaced
PARTS = {"html": checkout.PAGES, ".doctrees": STATE / ".doctrees", "jupyter_execute": STATE / "jupyter_execute"}
INPUTS = [
    "_config.yml",
    "_toc.yml",
    "book",
    "notebooks",
    "subnorm",  # the API pages
    "subnorm_lab",
    "subnorm_classroom",
    "pyproject.toml",  # the repository's address
    "constraints.txt",
    "tools/book.py",
]


def build() -> bool:
    """Build the book unless it is up to date. A warning is an error, and leaves the existing pages unchanged."""
    page = checkout.PAGES / "index.html"
    with checkout.locked():
        move_into_place()
        inputs, last = input_hashes(), last_build()
        if inputs != last and not build_anew(inputs, last):
            print("The book has errors; see the lines above.")
            if page.is_file():
                print(f"The pages are still those of the last build without errors: {page}")
            return False
    if drafts := [path.stem for path in checkout.notebooks() if checkout.is_draft(path)]:
        print(f"Drafts, which the tests of finished chapters leave out: {', '.join(drafts)}")
    print(f"The book is up to date. Open {page}\n  in a browser: {page.as_uri()}")
    if install.RUN[0] not in checkout.read_json(install.INSTALLED):
        print("To run the notebooks: python3 course.py lab, which first installs PyTorch and JupyterLab.")
    return True


def build_anew(inputs: dict, last: dict) -> bool:
    """Build the pages of `inputs`, on top of the `last` build where that is safe."""
    start = time.monotonic()
    shutil.rmtree(NEXT, ignore_errors=True)
    # Sphinx reads only changed pages again, and repeats warnings only for them. So start from the last good build,
    # to read every page that has failed since; or from nothing, if an input that affects all pages has changed.
    if inputs["shape"] == last.get("shape"):
        for name, good in PARTS.items():
            if good.exists():
                shutil.copytree(good, NEXT / name)  # keeps the times, by which Sphinx detects changes
    print("Building the book", flush=True)
    if checkout.call([checkout.PYTHON, "-P", checkout.ROOT / "tools" / "book.py", NEXT]) != 0:
        shutil.rmtree(NEXT, ignore_errors=True)
        return False
    written = (NEXT / "html" / "index.html").stat().st_mtime_ns
    DONE.write_text(json.dumps({**inputs, "written": written}), "utf-8")
    move_into_place()
    print(f"Built in {time.monotonic() - start:.0f} s")
    return True


def input_hashes() -> dict:
    """Two hashes: of the files that Sphinx updates page by page, and of those that affect all pages."""
    roots = [checkout.ROOT / name for name in INPUTS]
    files = [path for root in roots for path in [root, *sorted(root.rglob("*"))] if path.is_file()]
    caches = re.compile(r"(^|/)(\.|__pycache__/)")  # hidden folders include ruff's and JupyterLab's caches
    kinds: dict = {"pages": [], "shape": []}
    for path in files:
        if not caches.search(path.relative_to(checkout.ROOT).as_posix()):
            kinds["pages" if path.suffix in (".md", ".ipynb", ".css") else "shape"].append(path)
    return {kind: checkout.digest_of_files(paths) for kind, paths in kinds.items()}


def last_build() -> dict:
    """Hashes of the pages' inputs; {} if they are gone, or overwritten by a plain `jupyter-book build`."""
    record = checkout.read_json(BUILT)
    page = checkout.PAGES / "index.html"
    return record if page.is_file() and record.pop("written", None) == page.stat().st_mtime_ns else {}


def move_into_place() -> None:
    """Move a successful build into place; after an interruption, finish moving it."""
    if not DONE.exists():
        return
    BUILT.unlink(missing_ok=True)
    for name, old in PARTS.items():
        new = NEXT / name
        if new.exists():
            old.parent.mkdir(exist_ok=True)
            if old.exists():
                shutil.rmtree(OLD, ignore_errors=True)
                old.rename(OLD)
            new.rename(old)
    DONE.replace(BUILT)
    for folder in (OLD, NEXT):
        shutil.rmtree(folder, ignore_errors=True)
