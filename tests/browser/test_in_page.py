"""The exercise sheets in their pages, as a student meets them: an editor, Python with NumPy, and the checks."""

import csv
import gzip
import json
import re

import pytest
from classroom.hand_ins import grade_class
from classroom.test_variants import answer_to
from helpers.look import accessible
from helpers.parts import need
from helpers.visit import CALM, DESK, KEEPS_NOTHING, PHONE, POLICY_HOLDS, opened, strictly
from subnorm_book.in_page.session import Session

from subnorm_classroom.files import as_json
from subnorm_classroom.sheets import class_sheets, variants
from subnorm_classroom.sheets.student_sheet import check_line
from subnorm_lab import checks
from subnorm_lab.checks.collect import NEEDS
from tools import checkout
from tools.in_page.measure import RUN, VERDICTS

SHEETS = {path.stem.partition("-")[0]: path for path in sorted((checkout.ROOT / "notebooks/exercises").glob("*.ipynb"))}
HERE = [exercise for sheet in checks.SETS.values() for exercise in sheet if exercise.way not in NEEDS]

PACKS = ["numpy.tar.gz", "subnorm.tar.gz"]  # of sheet 02, which has the other tests here

DDOF1 = """def layer_norm(x, gamma, beta, eps):
    wide = x.astype(np.promote_types(x.dtype, np.float32))
    var = wide.var(-1, ddof=1, keepdims=True)
    return (gamma * (wide - wide.mean(-1, keepdims=True)) / np.sqrt(var + eps) + beta).astype(x.dtype)
"""
FOREVER = "while True:\n    pass"


def address(server, sheet):
    return f"{server}notebooks/exercises/{SHEETS[sheet].stem}.html"


def cells(path, tag):
    return [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if tag in cell["metadata"].get("tags", ())]


def answers(sheet):
    """For each exercise of a sheet that runs in a page: its right answer, and what its check says in the notebook."""
    path = SHEETS[sheet]
    for exercise, answer, check in zip(checks.SETS[sheet], cells(path, "answer"), cells(path, "check"), strict=True):
        if exercise in HERE:
            right = re.sub(r"\n *### (BEGIN|END) SOLUTION", "", "".join(answer["source"]))
            yield exercise.name, right, "".join(check["outputs"][0]["text"]).strip()


class Bench:
    """The workbench of an exercise."""

    def __init__(self, page, name):
        self.page, self.box = page, page.locator(f"[data-exercise={name}]")
        self.editor = self.box.locator(".cm-content")
        self.field = self.box.locator("textarea, .cm-content")

    def write(self, code):
        if self.box.locator("textarea").count():
            self.box.locator("textarea").focus()
        self.editor.fill(code)

    def press(self, button):
        self.box.locator(f"button[data-{button}]").click()

    def ended(self):
        self.page.wait_for_function("box => box.querySelector('.workbench').ariaBusy === 'false'", arg=self.handle)

    def waits(self, words):
        self.page.wait_for_function(
            "([box, words]) => box.querySelector('[data-state]').textContent.includes(words)", arg=[self.handle, words]
        )

    @property
    def handle(self):
        return self.box.element_handle()

    def does(self, button, code=None):
        if code is not None:
            self.write(code)
        self.press(button)
        self.ended()
        return self

    def text(self, part):
        return self.box.locator(f"[data-{part}]").text_content()

    @property
    def verdict(self):
        return self.text("verdict")

    @property
    def marked(self):
        return self.box.locator(".cm-marked").all_inner_texts()


@pytest.fixture(scope="module")
def workshop(browser, server):
    """Sheet 02, and what goes wrong in it that the reader does not see. A new browser would compile Python anew."""
    faults = []
    with opened(browser, server, faults, viewport=DESK, **CALM) as page:
        page.goto(address(server, "ex02"))
        yield page, faults


@pytest.fixture
def new_sheet(workshop, server):
    """Sheet 02, where nothing is written and no Python has started; whatever goes wrong."""
    page, faults = workshop
    page.unroute_all()
    page.evaluate("localStorage.clear()")
    faults.clear()
    page.goto(address(server, "ex02"))
    return page


@pytest.fixture
def sheet(new_sheet, workshop):
    """The same, where nothing may go wrong that the reader does not see."""
    yield new_sheet
    assert workshop[1] == []


@pytest.fixture
def used_sheet(workshop):
    """The same for tests that need no new Python."""
    page, faults = workshop
    page.unroute_all()
    faults.clear()
    yield page
    assert faults == []


@pytest.fixture(scope="module")
def python(browser, server):
    """Run code in a Python that has what every sheet needs; what it prints."""
    with opened(browser, server, []) as page:
        page.goto(address(server, "ex06"))
        assert page.evaluate(RUN, VERDICTS) == ""
        yield lambda code: page.evaluate(RUN, code)


def verdicts_here(settings, messages):
    """What the checks say in this Python to these messages of a page with these settings."""
    session = Session(settings["setup"], settings["exercises"])
    return [json.loads(session.run(m["cell"], m["code"], m["check"], print))["verdict"] for m in messages]


# Keep what the page asks of Python, and answer nothing.
ASKED = """() => {
  globalThis.asked = [];
  SubnormPython.prototype.run = async (message) => asked.push(message) && { error: "", line: 0, verdict: "", tag: "" };
}"""
SETTINGS = "JSON.parse(document.querySelector('[data-in-page]').dataset.inPage)"


def test_all_answers_get_the_verdicts_of_the_notebook(python):
    """Right answers and all named mistakes: the same sentences as in this Python."""
    here = {}
    exec(VERDICTS, here)
    expected = {exercise.name: here["verdicts"](exercise.name) for exercise in HERE}
    assert sum(map(len, expected.values())) > 400
    for name, wanted in expected.items():
        assert json.loads(python(f"print(json.dumps(verdicts({name!r})))")) == wanted


@pytest.mark.parametrize("name", SHEETS)
def test_every_right_answer_of_a_sheet_is_right_in_its_page(browser, server, python, name):
    """Of what the page gives to Python at the press of Check; and the setup of the sheet runs in a page."""
    faults, here = [], list(answers(name))
    with opened(browser, server, faults, viewport=DESK, **CALM) as page:
        page.goto(address(server, name))
        page.evaluate(ASKED)
        for exercise, right, _ in here:
            Bench(page, exercise).does("check", right)
        settings, messages = page.evaluate(f"[{SETTINGS}, asked]")
    assert faults == []
    assert settings["packs"] == PACKS or name == "ex06"  # that sheet runs as a whole in test_playground.py
    assert python(settings["setup"]) == ""
    assert verdicts_here(settings, messages) == [said for _, _, said in here]


def test_the_model_speaks_as_in_the_notebook(python, capsys):
    code = "def swiglu(h, gate, up, down):\n    return np.maximum(h @ gate.T, 0) * (h @ up.T) @ down.T"
    scope = {"np": checks.exercise.np}
    exec(code, scope)
    checks.swiglu(scope["swiglu"])
    said = capsys.readouterr().out.strip()
    assert "The model then says “" in said
    setup = "import numpy as np\nfrom subnorm_lab import checks"
    assert python(f"{setup}\n{code}\nchecks.swiglu(swiglu)").startswith(f"{said}\n")


def test_a_mistake_is_told_as_in_the_notebook(used_sheet, capsys):
    scope = {"np": checks.exercise.np}
    exec(DDOF1, scope)
    checks.layer_norm(scope["layer_norm"])
    said = capsys.readouterr().out.strip()
    assert "unbiased" in said
    assert Bench(used_sheet, "layer_norm").does("check", DDOF1).verdict == said


@pytest.mark.parametrize(("button", "part"), [("run", "output"), ("check", "verdict")])
def test_what_a_run_says_is_brought_into_view(used_sheet, button, part):
    bench = Bench(used_sheet, "layer_norm")
    bench.write(f"{DDOF1}print('first')\nprint('second')")
    edge = "button => scrollTo(0, scrollY + button.getBoundingClientRect().bottom + 8 - innerHeight)"
    bench.box.locator(f"button[data-{button}]").evaluate(edge)
    before = used_sheet.evaluate("scrollY")
    bench.does(button)
    assert used_sheet.evaluate("scrollY") > before
    bottom = "part => [part.getBoundingClientRect().bottom, innerHeight]"
    seen, window = bench.box.locator(f"[data-{part}]").evaluate(bottom)
    assert seen <= window
    before = used_sheet.evaluate("scrollY")
    bench.does(button)
    assert used_sheet.evaluate("scrollY") == before  # it is in view


def test_names_are_completed(used_sheet):
    bench = Bench(used_sheet, "layer_norm")
    bench.does("run", "import numpy as np")
    bench.editor.focus()
    used_sheet.keyboard.press("ControlOrMeta+a")
    used_sheet.keyboard.type("np.promote_t")
    used_sheet.locator(".cm-tooltip-autocomplete li", has_text="promote_types").click()
    used_sheet.wait_for_function(
        "field => field.innerText.trim() === 'np.promote_types'", arg=bench.editor.element_handle()
    )


@pytest.mark.parametrize(
    ("code", "ends", "marked"),
    [
        ("def f(x):\n    return y\nf(1)", "NameError: name 'y' is not defined", "    return y"),
        ("a = 1\nb = = 2", "SyntaxError: invalid syntax", "b = = 2"),
        ("input('Your name?')", "nobody can answer input() in a page", "input('Your name?')"),
        ("def f(n): return f(n + 1)\nf(0)", "RecursionError: maximum recursion depth", "def f(n): return f(n + 1)"),
        ("import torch", "Use the notebook for everything else", "import torch"),
        (
            "x = []\nx.append(fold)",
            "fold is defined by another cell of this page",
            "x.append(fold)",
        ),
        ("raise SystemExit('enough')", "SystemExit: enough", "raise SystemExit('enough')"),
        ("import js\njs.fetch('https://example.org').then(print)", "", ""),
    ],
)
def test_an_error_is_shown_with_its_line(workshop, code, ends, marked):
    page, faults = workshop
    faults.clear()
    bench = Bench(page, "layer_norm").does("check", code)
    last = bench.text("output").split("\n")[-2:] if ends else [ends]
    assert ends in "\n".join(last)
    assert bench.marked == ([marked] if marked else [])
    assert "session.py" not in bench.text("output")
    assert bench.editor.inner_text().rstrip("\n").replace("\n\n", "\n") == code
    assert "2\n" in bench.does("run", "1 + 1").text("output")
    assert [fault for fault in faults if "elsewhere" in fault] == []


def test_a_line_that_a_check_names_is_marked(used_sheet):
    bench = Bench(used_sheet, "layer_norm").does("check", "def layer_norm(*inputs):\n    a = 1\n    return a / 0")
    assert "ZeroDivisionError in line 3 of your cell" in bench.verdict
    assert bench.marked == ["    return a / 0"]


def test_a_flood_of_output_is_cut(used_sheet):
    bench = Bench(used_sheet, "layer_norm").does("run", "for k in range(100_000): print('a line')")
    text = bench.text("output")
    assert text.endswith("\n… cut after 20,000 characters")
    assert len(text) < 21_000
    assert bench.does("run", "'short'").text("output") == "'short'\n"


def test_an_exercise_that_needs_pytorch_leads_to_the_notebook(used_sheet):
    box = used_sheet.locator("[data-exercise=make_layer_norm]")
    assert box.locator(".workbench").count() == 0
    assert "PyTorch" in box.locator(".elsewhere").inner_text()
    assert box.locator(".elsewhere a").get_attribute("href").endswith("ex02-layer-norm.ipynb")


def test_the_contents_of_a_sheet_tick_what_a_check_accepts(used_sheet):
    bench = Bench(used_sheet, "layer_norm")
    link = used_sheet.locator(f".page-toc a[href='#{bench.box.evaluate('box => box.closest(`section`).id')}']")
    right = next(answer for name, answer, _ in answers("ex02") if name == "layer_norm")
    for code, ticked in ((DDOF1, False), (right, True), (DDOF1, False)):
        bench.does("check", code)
        assert ("right" in (link.get_attribute("class") or "").split()) == ticked
        assert ("(right)" in (link.get_attribute("aria-label") or "")) == ticked
    bench.does("check", right)
    used_sheet.reload()
    assert "right" in link.get_attribute("class").split()
    others = used_sheet.locator(".page-toc a.read, .page-toc a.right").count()
    used_sheet.evaluate("document.querySelector('.prev-next-area').scrollIntoView()")
    assert used_sheet.locator(".page-toc a.read, .page-toc a.right").count() == others


def test_a_sheet_at_work_serves_everybody_on_a_phone(used_sheet):
    """Nothing is wider than the phone, and axe finds nothing, with an error, a verdict and a list of names."""
    page = used_sheet
    page.set_viewport_size(PHONE)
    Bench(page, "layer_norm").does("check", DDOF1)
    Bench(page, "invariances").does("run", f"np.ones(3) @ np.ones({10**6})  # {'long ' * 40}")
    Bench(page, "fold").does("check", "def fold(*inputs):\n    print('x' * 500)\n    return 1 / 0")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    wide = "all => all.filter((e) => e.scrollWidth > e.clientWidth).length"
    assert page.locator(".cm-scroller").evaluate_all(wide) == 0  # a long line goes on below
    page.evaluate("document.querySelectorAll('.cm-line').forEach((line) => { line.style.color = 'rgb(103, 48, 197)' })")
    assert accessible(page, "dark", "light") == []  # Chromium keeps the colour of what was replaced on such a line
    page.set_viewport_size(DESK)


def test_nothing_loads_before_it_is_asked_for(browser, server):
    asked = []
    with opened(browser, server, [], viewport=DESK) as page:
        page.on("request", lambda request: asked.append(request.url.removeprefix(server).partition("?")[0]))
        page.goto(address(server, "ex02"))
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        page.wait_for_load_state("networkidle")
        assert [url for url in asked if "python" in url or "worker" in url] == []
        asked.clear()
        bench = Bench(page, "layer_norm")
        bench.write("1 + 1")
        assert asked == ["_static/python/editor.js"]
        bench.does("run")
        assert bench.text("output") == "2\n"
    stored = json.loads((checkout.ROOT / "book/_static/python/parts.json").read_text("utf-8"))["files"]
    loaded = {url.rpartition("/")[2] for url in asked}
    assert loaded == {*stored, "subnorm.tar.gz", "in-page-worker.js"}


def test_by_keyboard(sheet):
    """Tab enters and leaves the editor both ways; two chords run and check."""
    bench = Bench(sheet, "layer_norm")
    sheet.locator("[data-exercise=layer_norm] textarea").focus()
    bench.editor.wait_for()
    assert bench.editor.evaluate("e => e === document.activeElement")
    for leave, enter in (("Tab", "Shift+Tab"), ("Shift+Tab", "Tab")):
        sheet.keyboard.press(leave)
        assert not bench.editor.evaluate("e => e === document.activeElement")
        sheet.keyboard.press(enter)
        assert bench.editor.evaluate("e => e === document.activeElement")
    sheet.keyboard.press("ControlOrMeta+a")
    sheet.keyboard.type("def layer_norm(*inputs):\nreturn 1")  # the editor indents
    sheet.keyboard.press("Shift+Enter")
    bench.ended()
    assert bench.verdict.startswith("✗ layer_norm: on a (3, 8) batch, the shape is not right: the result has shape ()")
    sheet.keyboard.press("ControlOrMeta+End")
    sheet.keyboard.type("\n")
    sheet.keyboard.press("Backspace")
    sheet.keyboard.type("layer_norm()")
    sheet.keyboard.press("ControlOrMeta+Enter")
    bench.ended()
    assert (bench.text("output"), bench.verdict) == ("1\n", "")


def test_stop_ends_a_loop_and_the_next_run_starts_anew(sheet):
    bench, other = Bench(sheet, "layer_norm"), Bench(sheet, "fold")
    bench.does("run", "def f(): return 1\nf()")
    bench.write(f"print('begun')\nimport sys; sys.stdout.flush()\n{FOREVER}")
    bench.press("run")
    sheet.wait_for_function("box => box.querySelector('[data-output]').textContent === 'begun\\n'", arg=bench.handle)
    assert other.box.locator("[data-run]").get_attribute("aria-disabled") == "true"
    bench.box.locator("[data-stop]").focus()
    with sheet.workers[0].expect_event("close"):  # in a loop, a moment later
        sheet.keyboard.press("Enter")
    bench.waits("Stopped.")
    assert bench.box.locator("[data-run]").evaluate("e => e === document.activeElement")
    assert other.does("run", "f()").text("output").endswith("NameError: name 'f' is not defined")
    assert len(sheet.workers) == 1
    assert "begun" in bench.editor.inner_text()


def test_stop_ends_loading(new_sheet):
    held = []
    new_sheet.route("**/numpy.tar.gz*", lambda route: held.append(route))
    bench = Bench(new_sheet, "layer_norm")
    bench.press("run")
    new_sheet.wait_for_function("/[1-9].* of .* MB/.test(document.querySelector('.loading span').textContent)")
    bench.press("stop")
    bench.waits("Stopped.")
    new_sheet.unroute("**/numpy.tar.gz*")
    assert bench.does("run", "1 + 1").text("output") == "2\n"


def absent_pack(route):
    route.fulfill(status=404)


def cut(route):
    route.fulfill(body=route.fetch().body()[:-1000])


def changed(route):
    body = bytearray(route.fetch().body())
    body[5000] ^= 1
    route.fulfill(body=bytes(body))


def replaced(route):
    """By something whole that is not what the build has made."""
    route.fulfill(body=gzip.compress(gzip.decompress(route.fetch().body()), 1))


@pytest.mark.parametrize(
    ("what", "part", "said"),
    [
        (lambda route: route.abort(), "pyodide.asm.wasm.gz", "Are you online?"),
        (lambda route: route.abort(), "pyodide.asm.js", "Are you online?"),
        (lambda route: route.abort(), "in-page-worker.js", "Are you online?"),
        (absent_pack, "stdlib.zip.gz", "stdlib.zip.gz (error 404) did not arrive"),
        (cut, "numpy.tar.gz", "damaged (numpy.tar.gz)"),
        (changed, "subnorm.tar.gz", "damaged (subnorm.tar.gz)"),
        (replaced, "stdlib.zip.gz", "damaged (stdlib.zip.gz)"),
    ],
)
def test_what_does_not_arrive_is_told_and_the_next_run_tries_again(new_sheet, what, part, said):
    new_sheet.route(f"**/{part}*", what)
    bench = Bench(new_sheet, "layer_norm")
    bench.does("run", "1 + 1")
    assert said in bench.text("state")
    new_sheet.unroute(f"**/{part}*")
    assert bench.does("run").text("output") == "2\n"


LACKING = {
    "delete globalThis.WebAssembly": "This browser cannot run Python",
    "WebAssembly.compile = () => { throw new WebAssembly.CompileError('blocked') }": "work in the notebook",
    "Worker.prototype.postMessage = () => { throw new DOMException('memory') }": "Python broke down",
}


def test_a_browser_that_cannot_says_so(new_sheet):
    whole = "[globalThis.WebAssembly, WebAssembly.compile, Worker.prototype.postMessage]"
    new_sheet.evaluate(f"void (globalThis.whole = {whole})")
    bench = Bench(new_sheet, "layer_norm")
    for script, said in LACKING.items():
        new_sheet.evaluate(f"void ({script})")
        bench.does("run", "1 + 1")
        assert said in bench.text("state")
        assert bench.editor.inner_text().strip() == "1 + 1"
        new_sheet.evaluate(f"void ({whole} = whole)")


def test_a_browser_that_keeps_nothing_says_so_and_without_the_editor_the_field_works(browser, server):
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(address(server, "ex02"))
        assert not page.locator("[data-unkept]").is_visible()
        page.add_init_script(KEEPS_NOTHING)
        page.route("**/editor.js*", lambda route: route.abort())
        page.reload()
        assert page.locator("[data-unkept]").is_visible()
        bench = Bench(page, "layer_norm")
        bench.box.locator("textarea").fill(DDOF1)
        assert "unbiased" in bench.does("check").verdict


def test_from_a_file_the_page_says_what_to_do(browser, pages):
    faults, base = [], checkout.PAGES.as_uri() + "/"
    with opened(browser, base, faults, viewport=DESK) as page:
        page.goto(address(base, "ex02"))
        bench = Bench(page, "layer_norm").does("check", "1 + 1")
        assert "python3 course.py serve" in bench.text("state")
    assert faults == []


def test_a_strict_policy_allows_it(new_sheet):
    new_sheet.route("**/*", strictly)
    new_sheet.reload()
    bench = Bench(new_sheet, "layer_norm")
    assert "unbiased" in bench.does("check", DDOF1).verdict
    assert new_sheet.evaluate(POLICY_HOLDS)


def test_a_full_memory_is_emptied(sheet):
    bench = Bench(sheet, "layer_norm")
    bench.does("run", "hoard = []\nwhile True:\n    hoard.append(np.empty(10_000_000))")
    assert "MemoryError" in bench.text("output")
    assert "The memory was full" in bench.text("state")
    assert bench.does("run", "np.ones(10_000_000).sum()").text("output") == "np.float64(10000000.0)\n"


def test_what_is_written_is_kept_reset_and_brought_back(sheet):
    bench = Bench(sheet, "layer_norm")
    stub = bench.field.input_value()
    reset = bench.box.locator("[data-reset]")
    assert not reset.is_visible()
    bench.write("print('mine')")
    sheet.reload()
    assert bench.field.input_value() == "print('mine')"
    assert bench.does("run").text("output") == "mine\n"
    reset.click()
    assert bench.editor.inner_text().replace("\n\n", "\n").rstrip("\n") == stub.rstrip("\n")
    assert reset.inner_text() == "Undo reset"
    reset.click()
    assert bench.editor.inner_text().rstrip("\n") == "print('mine')"
    reset.click()
    sheet.reload()
    assert bench.field.input_value() == stub
    assert sheet.evaluate("localStorage.getItem('subnorm.answer.layer_norm')") is None


def downloaded(page, folder, place=".in-page-head"):
    with page.expect_download() as download:
        page.locator(f"{place} a").click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def test_an_untouched_download_is_the_students_notebook(sheet, tmp_path):
    path = downloaded(sheet, tmp_path)
    assert path.name == SHEETS["ex02"].name
    assert path.read_bytes() == (SHEETS["ex02"].parent / "student" / path.name).read_bytes()


def test_the_grader_takes_the_download(browser, server, tmp_path):
    """The round trip: written in the page, downloaded, graded."""
    need("bwrap")
    right = {name: code for name, code, _ in answers("ex01")}
    names = list(right)
    with opened(browser, server, [], viewport=DESK) as page:
        page.goto(address(server, "ex01"))
        for name in names[:-2]:
            Bench(page, name).write(right[name])
        Bench(page, names[-2]).write(f"def {names[-2]}(*inputs):\n    return 'σ “quoted” \\\\'")
        (tmp_path / "class").mkdir()
        path = downloaded(page, tmp_path / "class", ".hand-in")  # at the end of the page, as at its beginning
        assert path.read_bytes() == downloaded(page, tmp_path).read_bytes()
    assert grade_class("ex01", tmp_path / "class", tmp_path / "grades") == 0
    with (tmp_path / "grades/grades.csv").open(encoding="utf-8", newline="") as file:
        found = {row["exercise"]: row["diagnosis"] for row in csv.DictReader(file)}
    wrong = found.pop(names[-2])
    assert wrong not in ("right", "not_done", "missing")
    assert found == dict.fromkeys(names[:-2], "right") | {names[-1]: "not_done"}


def test_the_code_of_an_own_sheet_makes_the_page_ask_for_its_variants(browser, server, tmp_path):
    """Told by the address, kept, checked, downloaded and graded; and taken back."""
    need("bwrap")
    releases = (variants.Release("ex01", seed, ("Ada",)) for seed in range(100))
    codes = {class_sheets.variants_code(one.exercises("Ada", checks.SETS["ex01"])): one for one in releases}
    release = codes["0001200"]
    own = {ex.name: ex for ex in release.exercises("Ada", checks.SETS["ex01"]) if ex.chosen}
    room, faults = tmp_path / "class", []
    room.mkdir()
    with opened(browser, server, faults, viewport=PHONE, **CALM) as page:
        note = page.locator("[data-own]")
        page.goto(address(server, "ex01"))
        assert not note.is_visible()
        page.goto(address(server, "ex01") + "#variant=0001200")
        assert "what your own sheet asks for (0001200)" in note.inner_text()
        page.goto("about:blank")
        page.goto(address(server, "ex01"))
        bench = Bench(page, "scaled_stream")
        labels = "the factor 1 / sqrt(2 N)", "the factor 1 / sqrt(N)"
        assert bench.text("asks") == "Your sheet asks for {}; the task above is for {}.".format(*labels)
        assert Bench(page, "stream").text("asks") == ""
        plain = answer_to(checks.scaled_stream.variant(labels[1]))
        said = bench.does("check", plain).verdict
        assert said.endswith("this is the answer for {1}; yours asks for {0}.".format(*labels))
        for name, ex in own.items():
            assert Bench(page, name).does("check", answer_to(ex)).verdict.startswith(f"✓ {name}")
        assert accessible(page, "light") == []
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        path = downloaded(page, room)
        page.goto(address(server, "ex01") + "#variant=00010")
        assert note.inner_text().startswith("00010 is not the code of a student's sheet for this page")
        page.goto(address(server, "ex01") + "#variant=0000000")  # the page's own, among others'
        assert bench.text("asks") == ""
        assert "this is the answer for {}; yours asks for {}.".format(*labels) in bench.does("check").verdict
        note.locator("button").click()
        assert (note.is_visible(), page.url) == (False, address(server, "ex01"))
        assert bench.does("check", plain).verdict.startswith("✓")
    assert faults == []
    lines = ["".join(cell["source"]) for cell in cells(path, "check")]
    assert lines == [check_line(own.get(ex.name, ex)) for ex in checks.SETS["ex01"]]
    path.rename(room / "Ada.ipynb")
    (tmp_path / "release.json").write_text(as_json(release.as_dict()))
    assert grade_class("ex01", room, tmp_path / "grades", release=tmp_path / "release.json") == 0
    with (tmp_path / "grades/grades.csv").open(encoding="utf-8", newline="") as file:
        found = {row["exercise"]: (row["diagnosis"], row["variant"]) for row in csv.DictReader(file)}
    assert {name: found[name] for name in own} == {name: ("right", ex.chosen.label) for name, ex in own.items()}


def test_paper_and_pages_without_a_script_have_no_workbench(browser, server):
    with opened(browser, server, [], java_script_enabled=False) as page:
        page.goto(address(server, "ex02"))
        assert not page.locator(".workbench").first.is_visible()
        assert page.locator(".cell.tag_check").first.is_visible()
        assert page.locator(".in-page-head a").is_visible()
    with opened(browser, server, []) as page:
        page.goto(address(server, "ex02"))
        assert not page.locator(".cell.tag_check").first.is_visible()
        page.emulate_media(media="print")
        assert not page.locator(".workbench").first.is_visible()
