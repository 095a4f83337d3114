"""The sheets in a kernel: an empty one runs to its end, checks are live, and what is solved stays solved."""

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from subnorm_classroom.sheets import student_sheet
from subnorm_lab import checks

each_set = pytest.mark.parametrize("name", list(checks.SETS))


def run(path, answers=(), times=1):
    """Run all cells, several times in one kernel; `answers` are texts of cells, by their ids."""
    book = nbformat.read(path, as_version=4)
    for cell in book.cells:
        cell.source = dict(answers).get(cell.id, cell.source)
    client = NotebookClient(
        book,
        timeout=120,
        kernel_name="python3",
        extra_arguments=["--IPKernelApp.log_level=40"],
        coalesce_streams=True,
        resources={"metadata": {"path": str(path.parent)}},
    )
    with client.setup_kernel():
        for _ in range(times):
            for index, cell in enumerate(book.cells):
                client.execute_cell(cell, index)
    return book


def check_outputs(book):
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
    assert check_outputs(book) == wanted
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output.get("name") == "stderr"]


def test_the_checks_of_an_empty_sheet_are_live(monkeypatch):
    monkeypatch.setenv("SUBNORM_CHECKS", "raise")  # the kernel inherits it
    with pytest.raises(CellExecutionError) as error:
        run(sheet_of("ex02"))
    wanted = f"○ {checks.SETS['ex02'][0].name}: not done yet."
    assert (error.value.ename, error.value.evalue) == ("AssertionError", wanted)


@each_set
def test_what_is_solved_stays_solved(name):
    source = student_sheet.read_notebook(student_sheet.source_of(name))
    solved = {cell["id"]: cell["source"] for cell in source["cells"] if "answer" in student_sheet.tags(cell)}
    assert len(solved) == len(checks.SETS[name])
    found = check_outputs(run(sheet_of(name), solved, times=2))
    assert list(found) == [f"{name}-{k}-check" for k in range(1, len(solved) + 1)]
    assert all(text.startswith("✓") and text.count("\n") == 1 for text in found.values())


def test_one_that_does_not_stay_solved_is_seen(tmp_path):
    book = nbformat.read(sheet_of("ex01"), as_version=4)
    book.cells.append(nbformat.v4.new_code_cell("residual = None", id="scratch"))  # the next run checks the old name
    answer = next(cell for cell in book.cells if cell.id == "ex01-1-answer")
    answer.source = "if 'residual' not in globals():\n    def residual(x, sublayer): return x + sublayer(x)"
    path = tmp_path / "sheet.ipynb"
    nbformat.write(book, path)
    assert check_outputs(run(path))["ex01-1-check"].startswith("✓")
    assert not check_outputs(run(path, times=2))["ex01-1-check"].startswith("✓")
