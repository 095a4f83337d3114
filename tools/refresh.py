"""Run notebooks again and store their outputs: `python3 course.py refresh [notebook ...]`.

Two runs on the same machine write the same bytes, so a difference in git is a difference in a result.
"""

import json
import os
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from subnorm_lab import _files

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "book"))

from subnorm_book import notebook_text  # noqa: E402, it lies in the book's folder

NOTEBOOKS = ROOT / "notebooks"
# one NumPy thread, as in the tests; the kernels inherit it
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# store live figures as still pictures with their tables
os.environ["SUBNORM_STORED"] = "1"


def notebooks() -> list[Path]:
    """All notebooks of the course, except the students' sheets (student/), which have no solutions to run."""
    found = [path.relative_to(NOTEBOOKS) for path in NOTEBOOKS.rglob("*.ipynb")]
    return [NOTEBOOKS / path for path in sorted(found) if not {"student", ".ipynb_checkpoints"} & set(path.parts)]


def tags(cell: nbformat.NotebookNode) -> list[str]:
    return list(cell.metadata.get("tags", []))


def execute(book: nbformat.NotebookNode, folder: Path) -> nbformat.NotebookNode:
    """Run `book` in `folder`, and remove from its outputs everything that differs between runs."""
    stored = [cell.get("outputs", []) for cell in book.cells]
    client = NotebookClient(
        book,
        timeout=3600,
        kernel_name="python3",
        record_timing=False,
        # silences each kernel's warning about its local connection
        extra_arguments=["--IPKernelApp.log_level=40"],
        # a kernel splits its stream into messages differently under load
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    for cell, before in zip(book.cells, stored, strict=True):
        if cell.cell_type != "code":
            continue
        # a live measurement: keep the stored one
        if "nbval-ignore-output" in tags(cell) and before:
            cell.outputs = before
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = cell.execution_count
            # frames contain paths of this machine, and the page does not need them
            if output.output_type == "error":
                output.traceback = [f"{output.ename}: {output.evalue}"]
    kernelspec = {
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "name": "python3",
    }
    # without the patch version, which the kernel would add
    language = {"name": "python"}
    book.metadata.update(kernelspec=kernelspec, language_info=language)
    return book


def refresh(path: Path) -> bool:
    """Store the fresh outputs of one notebook. If a cell raises, leave the file unchanged and return False."""
    wall, cpu = time.perf_counter(), children_cpu()
    try:
        book = execute(nbformat.read(path, as_version=4), path.parent)
    except CellExecutionError as error:
        print(
            f"{error}\n{path.name}: a cell raised an error, so the file is unchanged.",
            file=sys.stderr,
        )
        return False
    _files.write(path, nbformat.writes(book) + "\n")  # Ctrl+C leaves the old notebook or the new one
    print(
        f"{path.name}: {time.perf_counter() - wall:.1f} s, CPU {children_cpu() - cpu:.1f} s",
        flush=True,
    )
    return True


def renew_numbers() -> None:
    """Write into the prose of all notebooks the numbers that their cells say now."""
    reader = notebook_text.reader_of(ROOT)
    for path in notebooks():
        book = json.loads(path.read_text("utf-8"))
        before = json.dumps(book)
        for cell in book["cells"]:
            if cell["cell_type"] == "markdown":
                cell["source"] = reader.renewed("".join(cell["source"])).splitlines(keepends=True)
        if json.dumps(book) != before:
            _files.write(path, json.dumps(book, indent=1, ensure_ascii=False) + "\n")
            print(f"{path.name}: its text quotes the new numbers")


def children_cpu() -> float:
    """CPU seconds of all finished kernels (0 on Windows, which does not count them)."""
    times = os.times()
    return times.children_user + times.children_system


if __name__ == "__main__":
    wanted = [Path(name) for name in sys.argv[1:]] or notebooks()
    for path in wanted:
        if path.suffix != ".ipynb" or not path.is_file():
            sys.exit(f"{path} is not a notebook. Name files in {NOTEBOOKS}, or none to refresh them all.")
    # run all of them, even after a failure
    stored = [refresh(path) for path in wanted]
    renew_numbers()
    sys.exit(not all(stored))
