"""Every chapter in a real JupyterLab, as if you open it and run nothing: not trusted, so without HTML.

One chapter also runs, in JupyterLab and in Notebook 7, which the same server has.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import threading

import nbformat
import pytest
from helpers.raw_marks import raw_marks
from helpers.visit import DESK, opened

from subnorm_lab import figures
from tools.checkout import ROOT, chapters

OPENED, RAN = "05c-rank-collapse", "03a-layer-norm-backward"
ALL_CELLS = "notebook-extension/tracker", {"windowingMode": "none"}  # draw them all, not only those in view
NOTEBOOK_7 = """async () => {
  globalThis.panel = jupyterapp.shell.currentWidget;
  await Promise.all([panel.context.ready, panel.sessionContext.ready]);
}"""
# Only a notebook that is to run needs a kernel.
OPEN = """async ({ path, starts }) => {
  const { commands, docRegistry } = jupyterapp;
  const preference = Object.getPrototypeOf(docRegistry).getKernelPreference;
  docRegistry.getKernelPreference = (...words) => ({ ...preference.apply(docRegistry, words), shouldStart: starts });
  globalThis.panel = await commands.execute("docmanager:open", { path });
  await Promise.all([panel.context.ready, panel.sessionContext?.ready]);
}"""
# Every cell is drawn, the formulas are set, and the pictures are loaded or broken.
DRAWN = """({ texts, outputs }) => {
  const all = (selector) => [...panel.node.querySelectorAll(selector)];
  return all(".jp-MarkdownCell .jp-RenderedMarkdown").filter((text) => text.childElementCount).length === texts
    && all(".jp-OutputArea-output").length >= outputs && all("img").every((image) => image.complete)
    && !all(".jp-RenderedMarkdown").some((text) => text.textContent.includes("$$"));
}"""
TEXTS = """() => [...panel.node.querySelectorAll(".jp-RenderedMarkdown")].map((text) => text.innerHTML).join("\\n")"""
PICTURES = """() => [...panel.node.querySelectorAll(".jp-RenderedImage img")]
  .filter((image) => image.naturalWidth > 0 && image.getClientRects().length).length"""
CLOSE = """async () => {
  if (panel.sessionContext.session) await panel.sessionContext.shutdown();
  panel.dispose();
}"""
RUN = """async () => {
  await jupyterapp.commands.execute("notebook:run-all-cells");
  const faults = panel.node.querySelectorAll("[data-mime-type='application/vnd.jupyter.stderr']");
  return [...faults].map((fault) => fault.textContent);
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A copy of the notebooks, which JupyterLab may save."""
    folder = tmp_path_factory.mktemp("jupyterlab")
    shutil.copytree(ROOT / "notebooks", folder / "notebooks", ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    name, values = ALL_CELLS
    path = folder / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(values), "utf-8")
    return folder


@pytest.fixture(scope="module")
def address(folder):
    """A JupyterLab that trusts no notebook and knows no settings of this machine's user."""
    own = {f"JUPYTER_{name}_DIR": str(folder / name) for name in ("CONFIG", "DATA", "RUNTIME")}
    environment = {**os.environ, **own, "IPYTHONDIR": str(folder / "ipython")}
    environment["JUPYTER_CONFIG_PATH"] = str(ROOT / "tools" / "jupyterlab")  # as `course.py lab` does
    environment.pop("SUBNORM_STORED", None)  # live figures are live
    options = {
        "ServerApp.root_dir": folder / "notebooks",
        "ServerApp.port": 0,
        "ServerApp.open_browser": False,
        "ServerApp.allow_root": True,
        "IdentityProvider.token": "",
    }
    for app in ("LabApp", "JupyterNotebookApp"):
        options |= {f"{app}.user_settings_dir": folder / "settings", f"{app}.expose_app_in_browser": True}
    command = [sys.executable, "-m", "jupyterlab", *(f"--{name}={value}" for name, value in options.items())]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, encoding="utf-8") as server:
        said = []
        for line in server.stderr:
            said.append(line)
            if found := re.search(r"http://localhost:\d+/", line):
                break
        else:
            pytest.fail("".join(said))
        threading.Thread(target=server.stderr.read, daemon=True).start()  # a full pipe would stop it
        yield found[0]
        server.terminate()


@pytest.fixture(scope="module")
def lab(browser, address):
    """JupyterLab in a browser."""
    faults = []
    with opened(browser, address, faults, viewport=DESK) as page:
        page.goto(f"{address}lab")
        page.wait_for_function("globalThis.jupyterapp?.restored.then(() => true)")
        yield page
    assert not [fault for fault in faults if fault.startswith("elsewhere")]  # the rest is JupyterLab's own


@pytest.fixture
def notebook_7(browser, address):
    """The chapter that runs, open in Notebook 7."""
    faults = []
    with opened(browser, address, faults, viewport=DESK) as page:
        page.goto(f"{address}notebooks/{RAN}.ipynb")
        page.wait_for_function("globalThis.jupyterapp?.restored.then(() => jupyterapp.shell.currentWidget?.context)")
        page.evaluate(NOTEBOOK_7)
        yield page
        page.evaluate(CLOSE)
    assert not [fault for fault in faults if fault.startswith("elsewhere")]


def outputs(book):
    return [output for cell in book.cells for output in cell.get("outputs", [])]


def faults_of(page, path):
    """What is wrong with an open notebook: its raw marks, and how many pictures it lacks."""
    book = nbformat.read(path, 4)
    stored = outputs(book)
    texts = sum(cell.cell_type == "markdown" for cell in book.cells)
    pictures = sum("image/png" in output.get("data", {}) or bool(figures.wide(output)) for output in stored)
    page.wait_for_function(DRAWN, arg={"texts": texts, "outputs": len(stored)})
    return raw_marks(page.evaluate(TEXTS)), pictures - page.evaluate(PICTURES)


@pytest.fixture
def look(lab, folder):
    """Open a notebook in JupyterLab, and return what is wrong with it."""

    def look(path, starts=False):
        lab.evaluate(OPEN, {"path": path, "starts": starts})
        return faults_of(lab, folder / "notebooks" / path)

    yield look
    lab.evaluate(CLOSE)


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_a_chapter_opens_without_marks_and_with_all_pictures(look, path):
    assert look(path.name) == ([], 0)


def test_a_mark_a_formula_and_a_missing_picture_are_seen(look, folder):
    book = nbformat.read(folder / "notebooks" / f"{OPENED}.ipynb", 4)
    book.cells[0].source += "\n\nIt is {val}`02:gain`.\n\n$$\\begin{aligned}x \\tag{1}\\end{aligned}$$"
    shown = [output for output in outputs(book) if figures.wide(output)]
    shown[0].data["image/png"] = "iVBORw0KGgo="
    del shown[1].data["image/png"]
    nbformat.write(book, folder / "notebooks" / "planted.ipynb")
    marks, missing = look("planted.ipynb")
    assert ["MathJax" in mark or "{val}`" in mark for mark in marks] == [True, True]
    assert missing == 2


def runs_and_moves(page):
    """All cells of the open notebook run, and its first live figure follows its slider."""
    assert page.evaluate(RUN) == []
    figure = page.locator("figure.live").first
    figure.scroll_into_view_if_needed()  # it waits until it is near
    slider = figure.locator("input[type=range]").first
    slider.click()
    states = []
    for key in ("Home", "ArrowRight"):
        slider.press(key)
        states.append(figure.get_attribute("data-state"))
    assert None not in states
    assert states[0] != states[1]


def test_a_chapter_runs_and_its_figures_move(look, lab):
    look(f"{RAN}.ipynb", starts=True)
    runs_and_moves(lab)


def test_a_chapter_opens_and_runs_in_notebook_7(notebook_7, folder):
    assert faults_of(notebook_7, folder / "notebooks" / f"{RAN}.ipynb") == ([], 0)
    runs_and_moves(notebook_7)


def test_the_start_page_is_readable_and_leads_to_a_chapter(lab):
    lab.evaluate(OPEN, {"path": "README.md", "starts": False})
    page = lab.locator(".jp-MarkdownViewer")
    page.get_by_role("link", name="the first chapter").click()
    lab.locator(".jp-NotebookPanel h1", has_text="Why depth breaks").wait_for()
