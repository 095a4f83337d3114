"""What a page loads to run Python: the stored Python with NumPy, and packs of files of the course's packages.

Python itself is stored in `_static/python` (tools/in_page/vendor.py). The packages come from the source tree: every
build packs what the pages import, the same bytes each time.
"""

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path

STATIC = Path("book", "_static", "python")
SESSION = tuple(Path("book", "subnorm_book", "in_page", name) for name in ("session.py", "cells.py"))

#: Packs of files of the package, each for the pages that need it: the checks, the model that speaks, and what cells of
#: the chapters import beside.
PACKS = {
    "subnorm.tar.gz": (
        "subnorm/__init__.py",
        "subnorm/_rules.py",
        "subnorm/residual.py",
        "subnorm/numpy/*.py",
        "subnorm_lab/__init__.py",
        "subnorm_lab/checks/**/*.py",
    ),
    "stories.tar.gz": (
        "subnorm_lab/stories/__init__.py",
        "subnorm_lab/stories/files.py",
        "subnorm_lab/stories/data/*.bin",
        "subnorm_lab/stories/data/stories.txt",
        "subnorm_lab/stories/data/LICENSE-tinyllamas",
    ),
    "chapters.tar.gz": (
        "subnorm_lab/report.py",
        "subnorm_lab/museum/*.py",
        "subnorm_lab/experiments/__init__.py",
        "subnorm_lab/experiments/block_backward.py",
        "subnorm_lab/experiments/conventions.py",
        "subnorm_lab/experiments/invariances.py",
        "subnorm_lab/experiments/jacobian.py",
        "subnorm_lab/experiments/parameters.py",
        "subnorm_lab/experiments/precision.py",
        "subnorm_lab/experiments/rank_collapse.py",
    ),
}


def pack_files(root, pack):
    """The files of a pack: {name in the pack: path}."""
    root = Path(root)
    found = [path for pattern in PACKS[pack] for path in sorted(root.glob(pattern))]
    more = {path.relative_to("book").as_posix(): root / path for path in SESSION} if pack == "subnorm.tar.gz" else {}
    return {path.relative_to(root).as_posix(): path for path in found} | more


def make_pack(root, pack):
    """A pack: the same bytes in every build."""
    result = io.BytesIO()
    with tarfile.open(fileobj=result, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, path in pack_files(root, pack).items():
            entry, content = tarfile.TarInfo(name), path.read_bytes()
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(result.getvalue(), 9, mtime=0)


def describe_part(content):
    """The size and the hash of a part."""
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def python_settings(root, packs, setup="", exercises=(), **more):
    """What the page's script has to know."""
    folder = Path(root, STATIC)
    stored = json.loads((folder / "parts.json").read_text("utf-8"))
    scripts = {name: stored["files"][name]["sha256"] for name in ("pyodide.js", "pyodide.asm.js", "editor.js")}
    worker = (folder.parent / "in-page-worker.js").read_text("utf-8")
    parts = {name: about for name, about in stored["files"].items() if name not in scripts}
    script = (folder / "pyodide.asm.js").read_bytes()
    parts["pyodide.asm.js"] = {"bytes": len(gzip.compress(script))}  # as servers send it
    parts |= {pack: describe_part(make_pack(root, pack)) for pack in packs}
    return {
        "versions": stored["versions"],
        "version": hashlib.sha256(repr((scripts, worker)).encode()).hexdigest()[:12],
        "editor": scripts["editor.js"][:12],
        "parts": parts,
        "packs": ["numpy.tar.gz", *packs],
        "setup": setup,
        "exercises": exercises,
        **more,
    }


def megabytes(about):
    """What the first run loads."""
    return sum(part["bytes"] for part in about["parts"].values()) / 1e6


def write_packs(app, error):
    folder = Path(app.outdir, "_static", "python")
    if not error and app.builder.format == "html" and folder.exists():
        for pack in PACKS:
            (folder / pack).write_bytes(make_pack(app.srcdir, pack))


def setup(app):
    app.connect("build-finished", write_packs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
