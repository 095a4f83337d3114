"""The sheets in a kernel: an empty one runs from top to bottom, a solved one passes, and the checks are live."""

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from subnorm_classroom.sheets import student_sheet
from subnorm_lab import checks

each_set = pytest.mark.parametrize("name", list(checks.SETS))


def run(path):
    book = nbformat.read(path, as_version=4)
    NotebookClient(
        book,
        timeout=120,
        kernel_name="python3",
        extra_arguments=["--IPKernelApp.log_level=40"],
        coalesce_streams=True,
        resources={"metadata": {"path": str(path.parent)}},
    ).execute()
    return book


def said(book):
    """The printed output of each check in a notebook, by cell."""
    return {
        cell.id: "".join(output.get("text", output.output_type) for output in cell.outputs)
        for cell in book.cells
        if "check" in cell.metadata.get("tags", [])
    }


def sheet_of(name):
    source = student_sheet.source_of(name)
    return source.parent / "student" / source.name


@each_set
def test_an_empty_sheet_runs_and_says_what_is_not_done(name):
    book = run(sheet_of(name))
    wanted = {f"{name}-{k}-check": f"○ {e.name}: not done yet.\n" for k, e in enumerate(checks.SETS[name], 1)}
    assert said(book) == wanted
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output.get("name") == "stderr"]


def test_the_checks_of_an_empty_sheet_are_live(monkeypatch):
    monkeypatch.setenv("SUBNORM_CHECKS", "raise")  # the kernel inherits it
    with pytest.raises(CellExecutionError) as error:
        run(sheet_of("ex02"))
    wanted = f"○ {checks.SETS['ex02'][0].name}: not done yet."
    assert (error.value.ename, error.value.evalue) == ("AssertionError", wanted)


@each_set
def test_a_solved_sheet_passes(name, monkeypatch):
    monkeypatch.setenv("SUBNORM_CHECKS", "raise")
    found = said(run(student_sheet.source_of(name)))
    assert list(found) == [f"{name}-{k}-check" for k in range(1, len(checks.SETS[name]) + 1)]
    assert all(text.startswith("✓") and text.count("\n") == 1 for text in found.values())
