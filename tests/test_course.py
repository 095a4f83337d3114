"""course.py and tools/{checkout,install,build,test,serve}.py without a network.

pip, venv and Sphinx are fakes, and the root is a temporary folder.
"""

import contextlib
import gzip
import importlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import tomllib
import urllib.request
from importlib import metadata
from pathlib import Path

import pytest
from helpers import requirements
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

SCRIPT = Path(__file__).parents[1] / "course.py"
READ, RUN, TEST = ["requirements-book.txt"], ["requirements.txt"], ["requirements.txt", "requirements-dev.txt"]
FAILURES = [KeyboardInterrupt(), "error: something"]  # of an install that changed nothing


class Pip:
    """A fake of venv and pip; `ends` lists the results of the next installs, each with its log."""

    def __init__(self, course):
        self.course, self.calls, self.venvs, self.ends = course, [], 0, []

    def make_venv(self, begun):
        self.venvs += 1
        make_python(self.course)
        self.course.install.INSTALLED.write_text(begun, "utf-8")

    def run_logged(self, command):
        self.calls.append([str(word) for word in command])
        end = self.ends.pop(0) if self.ends else ""
        self.course.install.LOG.write_text(str(end), "utf-8")
        if isinstance(end, BaseException):
            raise end
        return 1 if end else 0

    def install(self, files, torch_index=None):
        self.course.install.install(files, torch_index)

    def counts(self):
        return self.venvs, len(self.calls)


def make_python(course):
    course.checkout.BIN.mkdir(parents=True, exist_ok=True)
    course.checkout.PYTHON.touch()


@pytest.fixture
def course(tmp_path, monkeypatch):
    """course.py as a module, with its own copy of tools/, in a root that contains only the files that it reads."""
    shutil.copytree(SCRIPT.with_name("tools"), tmp_path / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(SCRIPT, tmp_path)
    for name in (*READ, *TEST, "constraints.txt", "pyproject.toml", "_config.yml"):
        (tmp_path / name).write_text(f"# {name}\n", "utf-8")
    (tmp_path / "requirements.txt").write_text("-r requirements-book.txt  # first\n", "utf-8")
    for name in ("book/intro.md", "notebooks/01.ipynb", "subnorm/__init__.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(f"{name}\n", "utf-8")
    for name in [name for name in sys.modules if name.partition(".")[0] in ("course", "tools")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("course")
    yield module
    for name in [name for name in sys.modules if name.partition(".")[0] in ("course", "tools")]:
        del sys.modules[name]


@pytest.fixture
def pip(course, monkeypatch):
    pip = Pip(course)
    monkeypatch.setattr(course.install, "make_venv", pip.make_venv)
    monkeypatch.setattr(course.install, "run_logged", pip.run_logged)
    return pip


@pytest.fixture
def books(course, monkeypatch):
    """A fake of tools/book.py that lists its calls; `books.status` is its exit status."""

    class Books(list):
        status = 0

    books = Books()

    def call(command, **options):
        books.append([str(word) for word in command])
        work = course.build.NEXT
        for folder in (work / "html", work / ".doctrees", work / "jupyter_execute"):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "state").write_text(f"{len(books)}")
        (work / "html" / "index.html").write_text(f"{len(books)}")
        (work / "html" / f"page{len(books)}.html").touch()
        if isinstance(books.status, BaseException):
            raise books.status
        return books.status

    monkeypatch.setattr(course.checkout, "call", call)
    return books


# --- the command line ---


def test_an_old_python_gets_one_line():
    code = (
        "import runpy, sys; sys.version_info = (3, 10, 4); sys.version = '3.10.4 (main)'; runpy.run_path(sys.argv[1])"
    )
    done = subprocess.run([sys.executable, "-c", code, SCRIPT], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "The course needs Python 3.11 or newer; this is 3.10.4. Get it at https://www.python.org\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("buidl", "invalid choice: 'buidl'"),
        ("", "required: COMMAND"),
        ("build x.ipynb", "unrecognized arguments: x.ipynb"),
        ("build --port 8001", "unrecognized arguments: --port 8001"),
        ("test packages", "invalid choice: 'packages' (choose from 'package')"),
        ("serve --port 99999", "a port is a number from 1 to 65535, not '99999'"),
        ("serve --port http", "a port is a number from 1 to 65535, not 'http'"),
    ],
)
def test_a_wrong_command_is_named(course, capsys, line, message):
    with pytest.raises(SystemExit):
        course.main(line.split())
    assert message in capsys.readouterr().err


def test_a_character_that_the_output_lacks_is_no_error():
    code = (
        "import runpy, sys; sys.argv = ['course.py', '--help']\n"
        f"try: runpy.run_path({str(SCRIPT)!r}, run_name='__main__')\n"
        "except SystemExit: print('\\u03c3')"
    )
    env = {**os.environ, "PYTHONIOENCODING": "cp1252"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout.endswith("?\n"), done.stderr


@pytest.mark.parametrize(
    ("line", "files", "ran"),
    [
        ("build", READ, []),
        ("serve --port 8001", READ, ["serve 8001"]),
        ("lab", RUN, ["jupyterlab README.md"]),
        ("prepare", RUN, []),
        ("refresh a.ipynb", RUN, [f"refresh.py {os.path.abspath('a.ipynb')}"]),  # noqa: PTH100
        ("test", TEST, ["tests None"]),
        ("test package", TEST, ["tests package"]),
        ("pack", TEST, ["tools.pack"]),
        ("speed --install import build", TEST, ["tools.speed --install import build"]),
    ],
)
def test_a_command_installs_what_it_needs_and_runs(course, pip, books, monkeypatch, line, files, ran):
    found = []
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr(course.test, "run_tests", lambda part: found.append(f"tests {part}") or True)
    monkeypatch.setattr(course.serve, "serve", lambda port: found.append(f"serve {port}"))
    assert course.main([*line.split(), "--torch-index", "https://example.org"])
    assert [word for word in pip.calls[0] if word.startswith("requirements")] == files
    called = [" ".join([Path(script).name, *words]) for _, _, script, *words in books]
    built = [call for call in called if call.startswith("book.py ")]
    assert found + [call for call in called if call not in built] == ran
    assert len(built) == (line.split()[0] in ("build", "serve", "pack"))


@pytest.mark.parametrize(("found", "advice"), [("/usr/bin/bwrap", ""), (None, "sudo apt install bubblewrap")])
def test_prepare_returns_and_says_what_is_ready_and_what_is_missing(course, pip, monkeypatch, capsys, found, advice):
    monkeypatch.setattr(course.shutil, "which", lambda name: found)
    assert course.main(["prepare"])
    said = capsys.readouterr().out
    assert ("bubblewrap" in said) == bool(advice)
    assert advice in said
    python = course.checkout.PYTHON.relative_to(course.checkout.ROOT)
    assert said.endswith(f"Ready: {python} -m subnorm_classroom\n")


# --- install ---


def test_a_python_without_ensurepip_is_named(course, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ensurepip" else find(name))
    with pytest.raises(SystemExit, match="apt install python3-venv"):
        course.install.make_venv("{}")


def test_a_venv_is_not_removed_under_the_running_python(course, monkeypatch):
    folder = course.checkout.BIN
    folder.mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(folder / ".." / ".." / ".venv"))  # the same folder by another name
    with pytest.raises(SystemExit, match="deactivate"):
        course.install.make_venv("{}")
    assert folder.exists()


def test_a_venv_half_removed_has_no_python(course, monkeypatch):
    make_python(course)

    def interrupted(path):
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt):
        course.install.make_venv("{}")
    assert not course.checkout.PYTHON.exists()


def test_each_command_adds_to_the_venv_with_one_call_of_pip_and_none_takes_away(course, pip):
    for files in (READ, RUN, TEST, TEST, RUN, READ):
        pip.install(files)
    assert pip.counts() == (1, 3)
    assert pip.calls[2][-4:] == ["-r", "requirements.txt", "-r", "requirements-dev.txt"]


def test_every_package_that_a_requirement_file_brings_is_pinned():
    """So pip has no choice, and what a later command installs moves nothing."""
    text = SCRIPT.with_name("constraints.txt").read_text("utf-8")
    pins = {canonicalize_name(name): version for name, version in re.findall(r"(?m)^([\w.-]+)==(\S+)$", text)}
    found = {name: metadata.version(name).partition("+")[0] for name in requirements.packages(*READ, *TEST)}
    assert len(found) > 150
    found.pop("subnorm")
    assert {name: version for name, version in found.items() if pins.get(name) != version} == {}


def test_every_pinned_package_runs_on_the_oldest_python_that_course_py_accepts():
    """The patch version matters: Debian 12 has Python 3.11.2, and a package may require 3.11.5."""
    pinned = re.findall(r"^([\w.-]+)==", SCRIPT.with_name("constraints.txt").read_text("utf-8"), re.MULTILINE)
    wanted = {}
    for name in pinned:
        with contextlib.suppress(metadata.PackageNotFoundError):  # only another system needs it
            wanted[name] = metadata.metadata(name).get("Requires-Python", "")
    assert len(wanted) > 100
    assert [name for name, versions in wanted.items() if not SpecifierSet(versions).contains("3.11.0")] == []


def test_a_reader_needs_no_torch():
    assert {"torch", "matplotlib", "jupyterlab", "triton"}.isdisjoint(requirements.packages(*READ))
    assert requirements.packages(*READ) < requirements.packages(*RUN)


def test_the_build_of_the_package_is_pinned():
    project = tomllib.loads(SCRIPT.with_name("pyproject.toml").read_text("utf-8"))
    pins = SCRIPT.with_name("constraints.txt").read_text("utf-8").split("\n")
    assert set(project["build-system"]["requires"]) <= set(pins)


@pytest.mark.parametrize(
    ("name", "text", "calls"),
    [
        ("requirements.txt", "# changed", 2),
        ("requirements-book.txt", "# changed", 2),
        ("constraints.txt", "# changed", 3),  # of all files: what a reader installs does not pass for the rest
        ("pyproject.toml", "[project]\nname = 'a'", 3),
        ("pyproject.toml", "[tool.ruff]\nline-length = 100\n", 1),  # the setting of a tool installs nothing
    ],
)
def test_changed_requirements_are_installed(course, pip, name, text, calls):
    pip.install(RUN)
    (course.checkout.ROOT / name).write_text(text, "utf-8")
    if calls == 3:
        pip.install(READ)
    pip.install(RUN)
    assert pip.counts() == (1, calls)


@pytest.mark.parametrize("kept", [True, False])
def test_pip_compiles_only_what_python_would_not_keep(pip, monkeypatch, kept):
    monkeypatch.setattr(sys, "dont_write_bytecode", not kept)
    pip.install(READ)
    assert ("--no-compile" in pip.calls[0]) == kept


@pytest.mark.parametrize(("files", "size"), [(READ, "0.4 GB"), (RUN, "1.4 GB with"), (TEST, "2.5 GB with")])
def test_the_size_is_printed_before_the_install(pip, capsys, files, size):
    pip.ends = ["OSError: [Errno 28] No space left on device"]
    with pytest.raises(SystemExit, match=f"The disk is full: {' and '.join(files)} need {size}"):
        pip.install(files)
    assert size in capsys.readouterr().out


def test_the_torch_index_is_kept_for_later_calls(pip):
    pip.ends = [KeyboardInterrupt("Installing collected packages: torch")]
    with pytest.raises(KeyboardInterrupt):
        pip.install(RUN, "https://example.org/cpu")
    pip.install(RUN)
    pip.install(TEST)
    assert [call[-2:] for call in pip.calls] == [["--extra-index-url", "https://example.org/cpu"]] * 3


def test_the_torch_index_waits_for_the_command_that_installs_torch(pip):
    pip.install(READ, "https://example.org/cuda")
    pip.install(READ, "https://example.org/cpu")
    pip.install(TEST)
    assert pip.venvs == 1
    assert [[word for word in call if "://" in word] for call in pip.calls] == [[], ["https://example.org/cpu"]]


def test_a_torch_index_that_comes_too_late_is_refused(pip):
    pip.install(RUN)
    with pytest.raises(SystemExit, match=r"has torch already\. To take it from https://example.org/cpu, remove"):
        pip.install(RUN, "https://example.org/cpu")
    assert pip.counts() == (1, 1)


@pytest.mark.parametrize("end", FAILURES)
def test_a_failed_change_that_installed_nothing_costs_nothing(course, pip, end):
    file = course.checkout.ROOT / "requirements.txt"
    pip.install(RUN)
    before = file.read_text("utf-8")
    file.write_text("# changed\n", "utf-8")
    pip.ends = [end]
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        pip.install(RUN)
    file.write_text(before, "utf-8")
    pip.install(RUN)
    assert pip.counts() == (1, 2)


def test_a_failed_change_that_installed_something_costs_the_venv(pip):
    pip.install(RUN)
    pip.ends = ["Installing collected packages: torch\nerror: something"]
    with pytest.raises(SystemExit):
        pip.install(TEST)
    pip.install(RUN)
    assert pip.venvs == 2


@pytest.mark.parametrize("end", FAILURES)
def test_an_unfinished_install_is_begun_again(pip, end):
    pip.ends = [end]
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        pip.install(RUN)
    pip.install(RUN)
    pip.install(RUN)
    assert pip.counts() == (2, 2)


def test_a_moved_venv_is_made_again(course, pip):
    pip.install(RUN)
    record = course.install.INSTALLED
    record.write_text(json.dumps({**course.checkout.read_json(record), "home": "elsewhere"}), "utf-8")
    pip.install(RUN)
    assert pip.venvs == 2


@pytest.mark.parametrize("failures", [0, 1])
def test_a_venv_made_by_hand_is_kept(course, pip, capsys, failures):
    make_python(course)
    pip.ends = ["error: something"] * failures
    with pytest.raises(SystemExit) if failures else contextlib.nullcontext():
        pip.install(RUN)
    pip.install(RUN)
    assert pip.counts() == (0, 1 + failures)
    assert "the next call removes it" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("log", "fix"),
    [
        ("WARNING: Retrying after NewConnectionError\nERROR: No matching distribution found", "No connection"),
        ("Temporary failure in name resolution", "No connection"),
        ("WARNING: Retrying after ReadTimeoutError\nERROR: ResolutionImpossible", "contradict each other"),
        (
            "ERROR: No matching distribution found for torch==2.13.0",
            r"no torch==2\.13\.0 for Python 3.*use Python 3\.11",
        ),
        ("ERROR: something", "install.log"),
    ],
)
def test_a_failed_install_says_what_to_do(pip, log, fix):
    pip.ends = [log]
    with pytest.raises(SystemExit, match=fix) as stop:
        pip.install(RUN)
    assert log.split("\n")[-1] in str(stop.value)
    assert "run the same command again" in str(stop.value)


def test_a_long_command_writes_its_log(course):
    course.checkout.VENV.mkdir()
    assert course.install.run_logged([sys.executable, "-c", "print('a line'); raise SystemExit(3)"]) == 3
    assert course.install.LOG.read_text("utf-8") == "a line\n"


# --- build ---


def change(course, name="book/intro.md", text="# changed"):
    (course.checkout.ROOT / name).write_text(text, "utf-8")


def kept_pages(course):
    """The pages that the builds have left, one for each build since the last from nothing."""
    return [path.stem for path in sorted(course.checkout.PAGES.glob("page*"))]


def test_a_book_is_built_once(course, books):
    assert course.build.build()
    assert course.build.build()
    script = course.checkout.ROOT / "tools" / "book.py"
    assert books == [[str(course.checkout.PYTHON), "-P", str(script), str(course.build.NEXT)]]
    assert not course.build.NEXT.exists()


def test_a_reader_is_shown_how_to_run_the_notebooks(course, pip, books, capsys):
    for files, shown in ((READ, True), (RUN, False)):
        pip.install(files)
        course.build.build()
        assert ("To run the notebooks: python3 course.py lab" in capsys.readouterr().out) == shown


@pytest.mark.parametrize("name", ["notebooks/.ruff_cache/a", "subnorm/__pycache__/a.pyc"])
def test_a_cache_is_no_change(course, books, name):
    course.build.build()
    (course.checkout.ROOT / name).parent.mkdir()
    change(course, name)
    course.build.build()
    assert len(books) == 1


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("book/intro.md", ["page1", "page2"]),
        ("book/own.css", ["page1", "page2"]),
        ("_config.yml", ["page2"]),
        ("subnorm/__init__.py", ["page2"]),
        ("pyproject.toml", ["page2"]),
        ("constraints.txt", ["page2"]),
    ],
)
def test_a_change_is_built_on_top_or_from_nothing_if_it_shapes_all_pages(course, books, name, kept):
    course.build.build()
    change(course, name)
    course.build.build()
    assert kept_pages(course) == kept


def current(course):
    """The numbers of the builds that gave Sphinx's state, and the number of the one that gave the pages."""
    folders = (course.checkout.PAGES, *course.build.PARTS.values())
    return {(folder / "state").read_text() for folder in folders}, (course.checkout.PAGES / "index.html").read_text()


@pytest.mark.parametrize("name", ["book/intro.md", "_config.yml"])
@pytest.mark.parametrize("end", [1, KeyboardInterrupt()])
def test_a_failed_build_leaves_the_pages_as_they_were(course, books, capsys, name, end):
    assert course.build.build()
    change(course, name, "# wrong")
    books.status = end
    for _ in range(2):  # it does not pass for good the second time
        with pytest.raises(KeyboardInterrupt) if end != 1 else contextlib.nullcontext():
            assert not course.build.build()
            assert "The pages are still those of the last build" in capsys.readouterr().out
        assert current(course) == ({"1"}, "1")
    books.status = 0
    assert course.build.build()
    assert current(course) == ({"4"}, "4")
    assert kept_pages(course) == (["page1", "page4"] if name == "book/intro.md" else ["page4"])


def test_a_failed_first_build_leaves_no_pages_and_nothing_to_serve(course, books, capsys, monkeypatch):
    served = []
    monkeypatch.setattr(course.install, "install", lambda *_: None)
    monkeypatch.setattr(course.serve, "serve", served.append)
    books.status = 1
    for _ in range(2):
        assert not course.main(["serve"])
    assert len(books) == 2
    assert not course.checkout.PAGES.exists()
    assert "still those" not in capsys.readouterr().out
    assert served == []
    books.status = 0
    assert course.main(["serve"])
    change(course)
    books.status = 1
    assert not course.main(["serve"])  # the pages of an earlier state are served
    assert served == [8000, 8000]


class PowerCut(BaseException):
    """Simulates the end of the process."""


STEPS = [(Path, "unlink"), (Path, "rename"), (Path, "replace"), (Path, "mkdir"), (shutil, "rmtree")]


def test_a_build_cut_off_at_any_step_leaves_one_book_or_the_other(course, books, monkeypatch):
    """Interrupt before each disk operation in turn. Between two renames the pages are missing until the next call."""
    course.build.build()
    index = course.checkout.PAGES / "index.html"
    away = []
    for cut in range(100):
        old, new = index.read_text(), str(len(books) + 1)
        change(course, text=f"changed {cut}")
        done = []

        def step(function, done=done, cut=cut):
            def counted(*args, **options):
                if len(done) == cut:
                    raise PowerCut
                done.append(function.__name__)
                return function(*args, **options)

            return counted

        with monkeypatch.context() as patch:
            for where, name in STEPS:
                patch.setattr(where, name, step(getattr(where, name)))
            try:
                ended = course.build.build()
            except PowerCut:
                ended = None
        away.append(not index.exists())
        assert away[-1] or index.read_text() in (old, new), cut
        change(course, text=f"wrong {cut}")
        books.status = 1
        assert not course.build.build()
        assert current(course)[1] in (old, new), cut
        books.status = 0
        assert course.build.build(), cut
        assert current(course) == ({str(len(books))}, str(len(books))), cut
        if ended:
            break
    assert ended
    assert sum(away) == 1
    assert sorted(path.name for path in course.checkout.BUILD.iterdir()) == ["course.json", "html", "lock", "state"]


def test_plain_jupyter_book_does_not_pass_for_a_build_without_errors(course, books):
    course.build.build()
    index = course.checkout.PAGES / "index.html"
    os.utime(index, ns=(0, index.stat().st_mtime_ns + 1))
    course.build.build()
    assert kept_pages(course) == ["page2"]


def test_pages_that_are_gone_are_built_again(course, books):
    course.build.build()
    shutil.rmtree(course.checkout.PAGES)  # as `jupyter-book clean .` does
    course.build.build()
    assert kept_pages(course) == ["page2"]


HOLD = "from tools import checkout\nwith checkout.locked():\n    print('held', flush=True)\n    input()\n"


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("command", ["build", "install"])
def test_one_process_at_a_time_builds_or_installs(course, pip, books, capfd, command, killed):
    """Another process holds the lock until it ends, in order or not; only then does this one go to work."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLD], cwd=course.checkout.ROOT, stdin=pipe, stdout=pipe) as other:
        assert other.stdout.readline() == b"held\n"
        work = course.build.build if command == "build" else lambda: pip.install(READ)
        thread = threading.Thread(target=work)
        thread.start()
        while not (printed := capfd.readouterr().out):
            thread.join(0.01)
        assert printed.startswith("Another course.py is installing or building in this checkout: waiting")
        assert (len(books), pip.counts()) == (0, (0, 0))
        other.kill() if killed else other.communicate(b"\n")
        thread.join()
    assert len(books) == (command == "build")
    assert len(pip.calls) == (command == "install")


# --- test ---


@pytest.mark.parametrize("failing", [None, "ruff", "mypy", "pytest", "build"])
def test_every_stage_runs_and_one_failure_is_a_failure(course, monkeypatch, capsys, failing):
    ran = []

    def tee(command):
        ran.append(command[2])
        lines = ["some output"]
        if command[2] == "pytest":
            lines = ["SKIPPED [2] parts.py:1: needs Chromium", "10 passed, 2 skipped in 1.23s"]
        return int(command[2] == failing), lines

    monkeypatch.setattr(course.test, "tee", tee)
    monkeypatch.setattr(course.build, "build", lambda: failing != "build")
    assert course.test.run_tests(None) == (failing is None)
    assert ran == ["ruff", "ruff", "mypy", "pytest", "pytest"]
    printed = capsys.readouterr().out
    assert printed.count("needs Chromium") == 2
    assert printed.endswith("20 passed, 4 skipped\n")
    assert ("FAILED" in printed) == (failing is not None)


def test_output_is_shown_and_kept(course, capfd):
    code = "print('=== 3 passed ===\\n'); raise SystemExit(1)"
    assert course.test.tee([sys.executable, "-c", code]) == (1, ["3 passed"])
    assert "=== 3 passed ===" in capfd.readouterr().out


# --- serve ---


@pytest.fixture
def url(course):
    """The address of a server with three files."""
    pages = course.checkout.PAGES
    pages.mkdir(parents=True)
    (pages / "index.html").write_text("é" * 1000, "utf-8")
    (pages / "a.js").write_text("let a = 1;\n" * 100, "utf-8")
    (pages / "a.png").write_bytes(b"\x89PNG")
    with course.serve.web_server(pages, 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def get(url, accept=""):
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept-Encoding": accept})) as reply:
        return reply.headers, reply.read()


def test_text_is_sent_compressed_as_it_is_now(course, url):
    headers, content = get(url, "gzip, br")
    assert (headers["Content-Encoding"], headers["Content-Type"]) == ("gzip", "text/html; charset=utf-8")
    assert len(content) == int(headers["Content-Length"]) < 100
    index = course.checkout.PAGES / "index.html"
    assert gzip.decompress(content) == index.read_bytes()
    assert get(url + "a.js?v=1", "gzip")[0]["Content-Type"] == "text/javascript; charset=utf-8"
    index.write_text("new", "utf-8")
    assert gzip.decompress(get(url, "gzip")[1]) == b"new"


@pytest.mark.parametrize(("name", "accept"), [("", ""), ("a.png", "gzip")])
def test_other_content_is_sent_unchanged(course, url, name, accept):
    headers, content = get(url + name, accept)
    assert headers["Content-Encoding"] is None
    assert content == (course.checkout.PAGES / (name or "index.html")).read_bytes()


def test_a_taken_port_is_named(course, url):
    port = int(url.split(":")[-1].strip("/"))
    with pytest.raises(SystemExit, match=f"--port {port + 1}"):
        course.serve.serve(port)


@pytest.mark.parametrize("port", [80, 65535])
def test_the_port_proposed_can_be_used(course, monkeypatch, port):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(course.serve, "web_server", refuse)
    with pytest.raises(SystemExit, match=r"--port 8000$"):
        course.serve.serve(port)
