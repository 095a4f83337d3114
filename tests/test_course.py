"""course.py without a network: pip and venv are fakes, and the root is a temporary folder."""

import contextlib
import gzip
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


class Pip:
    """A fake of venv and pip; `ends` lists the results of the next installs, each with its log."""

    def __init__(self, course):
        self.course, self.calls, self.made, self.ends = course, [], 0, []

    def make_venv(self, begun):
        self.made += 1
        self.course.BIN.mkdir(parents=True, exist_ok=True)
        self.course.PYTHON.touch()
        self.course.INSTALLED.write_text(begun, "utf-8")

    def logged(self, command):
        self.calls.append([str(word) for word in command])
        end = self.ends.pop(0) if self.ends else ""
        self.course.LOG.write_text(str(end), "utf-8")
        if isinstance(end, BaseException):
            raise end
        return 1 if end else 0


@pytest.fixture
def course(tmp_path):
    """course.py as a module, with a root that contains only the files that it reads."""
    shutil.copytree(SCRIPT.with_name("tools"), tmp_path / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    for name in (*READ, *TEST, "constraints.txt", "pyproject.toml", "_config.yml"):
        (tmp_path / name).write_text(f"# {name}\n", "utf-8")
    (tmp_path / "requirements.txt").write_text("-r requirements-book.txt  # first\n", "utf-8")
    for name in ("book/intro.md", "notebooks/01.ipynb", "subnorm/__init__.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(f"{name}\n", "utf-8")
    spec = importlib.util.spec_from_file_location("course_in_a_folder", tmp_path / "tools" / "course.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def pip(course, monkeypatch):
    pip = Pip(course)
    monkeypatch.setattr(course, "make_venv", pip.make_venv)
    monkeypatch.setattr(course, "logged", pip.logged)
    return pip


@pytest.fixture
def books(course, monkeypatch):
    """A fake of tools/book.py that lists its calls; `books.status` is its exit status."""

    class Books(list):
        status = 0

    books = Books()

    def call(command, **options):
        books.append([str(word) for word in command])
        pages = course.NEXT / "html"
        for folder in (pages, course.NEXT / ".doctrees", course.NEXT / "jupyter_execute"):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "state").write_text(f"{len(books)}")
        (pages / "index.html").write_text(f"{len(books)}")
        (pages / f"page{len(books)}.html").touch()
        if isinstance(books.status, BaseException):
            raise books.status
        return books.status

    monkeypatch.setattr(course, "call", call)
    return books


# --- Python ---


def test_an_old_python_is_told():
    code = (
        "import runpy, sys; sys.version_info = (3, 10, 4); sys.version = '3.10.4 (main)'; runpy.run_path(sys.argv[1])"
    )
    done = subprocess.run([sys.executable, "-c", code, SCRIPT], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("The course needs Python 3.11 or newer; this is 3.10.4. Get it at ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["buidl"], "invalid choice: 'buidl'"),
        ([], "command"),
        (["build", "x.ipynb"], "build takes no names"),
        (["build", "--port", "8001"], "build takes no --port"),
        (["build", "--install"], "build takes no --install"),
        (["test", "--survivors"], "test takes no --survivors"),
        (["serve", "--port", "99999"], "a port is a number from 1 to 65535, not '99999'"),
        (["serve", "--port", "http"], "a port is a number from 1 to 65535, not 'http'"),
    ],
)
def test_a_wrong_command_is_named(words, said):
    done = subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, text=True)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_character_that_the_output_lacks_is_no_error():
    code = (
        "import runpy, sys; sys.argv = ['course.py', '--help']\n"
        f"try: runpy.run_path({str(SCRIPT)!r}, run_name='__main__')\n"
        "except SystemExit: print('\\u03c3')"
    )
    env = {**os.environ, "PYTHONIOENCODING": "cp1252"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout.endswith("?\n"), done.stderr


def test_a_python_without_ensurepip_is_told(course, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ensurepip" else find(name))
    with pytest.raises(SystemExit, match="apt install python3-venv"):
        course.make_venv("{}")


def test_a_venv_is_not_removed_under_the_running_python(course, monkeypatch):
    course.BIN.mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(course.BIN / ".." / ".." / ".venv"))  # the same folder by another name
    with pytest.raises(SystemExit, match="deactivate"):
        course.make_venv("{}")
    assert course.VENV.exists()


def test_a_venv_half_removed_has_no_python(course, monkeypatch):
    course.BIN.mkdir(parents=True)
    course.PYTHON.touch()

    def interrupted(path):
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt):
        course.make_venv("{}")
    assert not course.PYTHON.exists()


# --- install ---


def test_one_pip_call_installs_once(course, pip):
    course.install(TEST, None)
    course.install(TEST, None)
    course.install(RUN, None)
    assert pip.made == len(pip.calls) == 1
    assert pip.calls[0][-4:] == ["-r", "requirements.txt", "-r", "requirements-dev.txt"]


@pytest.mark.parametrize(
    ("command", "files"),
    [("build", READ), ("serve", READ), ("lab", RUN), ("refresh", RUN), ("test", TEST), ("pack", TEST), ("speed", TEST)],
)
def test_a_command_installs_what_it_needs(course, pip, books, monkeypatch, command, files):
    for name in ("serve", "lab", "refresh", "test", "pack", "speed"):
        monkeypatch.setattr(course, name, lambda *_: True)
    monkeypatch.setattr(sys, "argv", ["course.py", command])
    assert course.main("")
    assert [word for word in pip.calls[0] if word.startswith("requirements")] == files


def test_each_command_adds_to_the_venv_and_none_takes_away(course, pip):
    for files in (READ, RUN, TEST, RUN, READ):
        course.install(files, None)
    assert (pip.made, len(pip.calls)) == (1, 3)


def test_every_package_that_a_requirement_file_brings_is_pinned(course):
    """So pip has no choice, and what a later command installs moves nothing."""
    text = SCRIPT.with_name("constraints.txt").read_text("utf-8")
    pins = {canonicalize_name(name): version for name, version in re.findall(r"(?m)^([\w.-]+)==(\S+)$", text)}
    found = {name: metadata.version(name).partition("+")[0] for name in requirements.packages(*READ, *TEST)}
    assert len(found) > 150
    found.pop("subnorm")
    assert {name: version for name, version in found.items() if pins.get(name) != version} == {}


def test_a_reader_needs_no_torch():
    assert {"torch", "matplotlib", "jupyterlab", "triton"}.isdisjoint(requirements.packages(*READ))
    assert requirements.packages(*READ) < requirements.packages(*RUN)


CHANGED = {
    **dict.fromkeys(["requirements.txt", "requirements-book.txt", "constraints.txt"], "# changed"),
    "pyproject.toml": "[project]\nname = 'a'",
}


@pytest.mark.parametrize("name", CHANGED)
def test_changed_requirements_are_installed(course, pip, name):
    course.install(RUN, None)
    (course.ROOT / name).write_text(CHANGED[name], "utf-8")
    course.install(RUN, None)
    assert (pip.made, len(pip.calls)) == (1, 2)


@pytest.mark.parametrize("name", ["constraints.txt", "pyproject.toml"])
def test_what_a_reader_installs_does_not_pass_for_the_rest(course, pip, name):
    course.install(TEST, None)
    (course.ROOT / name).write_text(CHANGED[name], "utf-8")
    course.install(READ, None)
    course.install(TEST, None)
    assert (pip.made, len(pip.calls)) == (1, 3)


@pytest.mark.parametrize("kept", [True, False])
def test_pip_compiles_only_what_python_would_not_keep(course, pip, monkeypatch, kept):
    monkeypatch.setattr(sys, "dont_write_bytecode", not kept)
    course.install(READ, None)
    assert ("--no-compile" in pip.calls[0]) == kept


@pytest.mark.parametrize(("files", "said"), [(READ, "0.4 GB"), (RUN, "1.4 GB with"), (TEST, "2.5 GB with")])
def test_the_size_is_said_before_the_install(course, pip, capsys, files, said):
    pip.ends = ["OSError: [Errno 28] No space left on device"]
    with pytest.raises(SystemExit, match=f"The disk is full: {' and '.join(files)} need {said}"):
        course.install(files, None)
    assert said in capsys.readouterr().out


def test_a_setting_of_a_tool_installs_nothing(course, pip):
    course.install(RUN, None)
    (course.ROOT / "pyproject.toml").write_text("[tool.ruff]\nline-length = 100\n", "utf-8")
    course.install(RUN, None)
    assert len(pip.calls) == 1


def test_the_build_of_the_package_is_pinned():
    project = tomllib.loads(SCRIPT.with_name("pyproject.toml").read_text("utf-8"))
    pins = SCRIPT.with_name("constraints.txt").read_text("utf-8").split("\n")
    assert set(project["build-system"]["requires"]) <= set(pins)


def test_the_torch_index_is_one_more_index(course, pip):
    course.install(RUN, "https://example.org/cpu")
    assert pip.calls[0][-2:] == ["--extra-index-url", "https://example.org/cpu"]


def test_the_torch_index_is_kept_for_later_calls(course, pip):
    pip.ends = [KeyboardInterrupt("Installing collected packages: torch")]
    with pytest.raises(KeyboardInterrupt):
        course.install(RUN, "https://example.org/cpu")
    course.install(RUN, None)
    course.install(TEST, None)
    assert [call[4:].count("https://example.org/cpu") for call in pip.calls] == [1, 1, 1]


def test_the_torch_index_waits_for_the_command_that_installs_torch(course, pip):
    course.install(READ, "https://example.org/cuda")
    course.install(READ, "https://example.org/cpu")
    course.install(TEST, None)
    assert pip.made == 1
    assert [[word for word in call if "://" in word] for call in pip.calls] == [[], ["https://example.org/cpu"]]


def test_a_torch_index_that_comes_too_late_is_refused(course, pip):
    course.install(RUN, None)
    with pytest.raises(SystemExit, match=r"has torch already\. To take it from https://example.org/cpu, remove"):
        course.install(RUN, "https://example.org/cpu")
    assert (pip.made, len(pip.calls)) == (1, 1)


@pytest.mark.parametrize("end", [KeyboardInterrupt(), "error: something"])
def test_a_failed_change_that_installed_nothing_costs_nothing(course, pip, end):
    course.install(RUN, None)
    before = (course.ROOT / "requirements.txt").read_text("utf-8")
    (course.ROOT / "requirements.txt").write_text("# changed\n", "utf-8")
    pip.ends = [end]
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        course.install(RUN, None)
    (course.ROOT / "requirements.txt").write_text(before, "utf-8")
    course.install(RUN, None)
    assert (pip.made, len(pip.calls)) == (1, 2)


def test_a_failed_change_that_installed_something_costs_the_venv(course, pip):
    course.install(RUN, None)
    pip.ends = ["Installing collected packages: torch\nerror: something"]
    with pytest.raises(SystemExit):
        course.install(TEST, None)
    course.install(RUN, None)
    assert pip.made == 2


@pytest.mark.parametrize("end", [KeyboardInterrupt(), "error: something"])
def test_an_unfinished_install_is_begun_again(course, pip, end):
    pip.ends = [end]
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        course.install(RUN, None)
    course.install(RUN, None)
    assert pip.made == 2
    course.install(RUN, None)
    assert (pip.made, len(pip.calls)) == (2, 2)


def test_a_moved_venv_is_made_again(course, pip):
    course.install(RUN, None)
    course.INSTALLED.write_text(json.dumps({**course.read_json(course.INSTALLED), "home": "elsewhere"}), "utf-8")
    course.install(RUN, None)
    assert pip.made == 2


def test_a_venv_made_by_hand_is_kept(course, pip, capsys):
    course.BIN.mkdir(parents=True)
    course.PYTHON.touch()
    course.install(RUN, None)
    assert (pip.made, len(pip.calls)) == (0, 1)
    assert "the next call removes it" in capsys.readouterr().out


def test_a_venv_made_by_hand_is_kept_when_nothing_was_installed(course, pip):
    course.BIN.mkdir(parents=True)
    course.PYTHON.touch()
    pip.ends = ["error: something"]
    with pytest.raises(SystemExit):
        course.install(RUN, None)
    course.install(RUN, None)
    assert (pip.made, len(pip.calls)) == (0, 2)


@pytest.mark.parametrize(
    ("log", "said"),
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
def test_a_failed_install_says_what_to_do(course, pip, log, said):
    pip.ends = [log]
    with pytest.raises(SystemExit, match=said) as stop:
        course.install(RUN, None)
    assert log.split("\n")[-1] in str(stop.value)
    assert "run the same command again" in str(stop.value)


def test_a_long_command_writes_its_log(course):
    course.VENV.mkdir()
    assert course.logged([sys.executable, "-c", "print('a line'); raise SystemExit(3)"]) == 3
    assert course.LOG.read_text("utf-8") == "a line\n"


# --- build ---


def test_a_book_is_built_once(course, books):
    assert course.build()
    assert course.build()
    assert books == [[str(course.PYTHON), "-P", str(course.ROOT / "tools" / "book.py"), str(course.NEXT)]]
    assert not course.NEXT.exists()


def test_a_reader_is_told_how_to_run_the_notebooks(course, pip, books, capsys):
    for files, told in ((READ, True), (RUN, False)):
        course.install(files, None)
        course.build()
        assert ("To run the notebooks: python3 course.py lab" in capsys.readouterr().out) == told


@pytest.mark.parametrize("name", ["notebooks/.ruff_cache/a", "subnorm/__pycache__/a.pyc"])
def test_a_cache_is_no_change(course, books, name):
    course.build()
    (course.ROOT / name).parent.mkdir()
    (course.ROOT / name).touch()
    course.build()
    assert len(books) == 1


@pytest.mark.parametrize("name", ["book/intro.md", "book/own.css"])
def test_a_changed_page_or_sheet_is_built_on_top(course, books, name):
    course.build()
    (course.ROOT / name).write_text("changed", "utf-8")
    course.build()
    assert [path.name for path in sorted(course.PAGES.glob("page*"))] == ["page1.html", "page2.html"]


@pytest.mark.parametrize("name", ["_config.yml", "subnorm/__init__.py", "pyproject.toml", "constraints.txt"])
def test_what_shapes_pages_is_built_from_nothing(course, books, name):
    course.build()
    (course.ROOT / name).write_text("# changed", "utf-8")
    course.build()
    assert [path.name for path in course.PAGES.glob("page*")] == ["page2.html"]


def page(course):
    """The current pages, and Sphinx's state."""
    folders = (course.PAGES, *course.PARTS.values())
    return {(folder / "state").read_text() for folder in folders}, (course.PAGES / "index.html").read_text()


@pytest.mark.parametrize("name", ["book/intro.md", "_config.yml"])
@pytest.mark.parametrize("end", [1, KeyboardInterrupt()])
def test_a_failed_build_leaves_the_pages_as_they_were(course, books, capsys, name, end):
    assert course.build()
    (course.ROOT / name).write_text("# wrong", "utf-8")
    books.status = end
    for _ in range(2):  # it does not pass for good the second time
        if end == 1:
            assert not course.build()
            assert "The pages are still those of the last build" in capsys.readouterr().out
        else:
            with pytest.raises(KeyboardInterrupt):
                course.build()
        assert page(course) == ({"1"}, "1")
    books.status = 0
    assert course.build()
    assert len(books) == 4
    assert page(course) == ({"4"}, "4")
    kept = [path.name for path in sorted(course.PAGES.glob("page*"))]
    assert kept == (["page1.html", "page4.html"] if name == "book/intro.md" else ["page4.html"])


def test_a_failed_first_build_leaves_no_pages(course, books, capsys):
    books.status = 1
    assert not course.build()
    assert not course.PAGES.exists()
    assert "still those" not in capsys.readouterr().out
    assert not course.build()
    assert len(books) == 2


def test_pages_of_an_earlier_state_are_served(course, books, monkeypatch):
    served = []
    monkeypatch.setattr(course, "install", lambda *_: None)
    monkeypatch.setattr(course, "serve", lambda port: served.append(port) or True)
    monkeypatch.setattr(sys, "argv", ["course.py", "serve"])
    books.status = 1
    assert not course.main("")
    assert served == []
    books.status = 0
    assert course.main("")
    (course.ROOT / "book" / "intro.md").write_text("wrong", "utf-8")
    books.status = 1
    assert not course.main("")
    assert served == [8000, 8000]


class PowerCut(BaseException):
    """Simulates the end of the process."""


STEPS = [(Path, "unlink"), (Path, "rename"), (Path, "replace"), (Path, "mkdir"), (shutil, "rmtree")]


def test_a_build_cut_off_at_any_step_leaves_one_book_or_the_other(course, books, monkeypatch):
    """Interrupt before each disk operation in turn. Between two renames the pages are missing until the next call."""
    course.build()
    seen = []
    for cut in range(100):
        old = (course.PAGES / "index.html").read_text()
        (course.ROOT / "book" / "intro.md").write_text(f"changed {cut}", "utf-8")
        done = []

        def step(function, done=done, cut=cut):
            def made(*args, **options):
                if len(done) == cut:
                    raise PowerCut
                done.append(function.__name__)
                return function(*args, **options)

            return made

        built = len(books)
        with monkeypatch.context() as patch:
            for where, name in STEPS:
                patch.setattr(where, name, step(getattr(where, name)))
            try:
                ended = course.build()
            except PowerCut:
                ended = None
        new = str(built + 1)
        found = (course.PAGES / "index.html").read_text() if course.PAGES.exists() else "away"
        seen.append(found == "away")
        assert found in (old, new, "away"), cut
        (course.ROOT / "book" / "intro.md").write_text(f"wrong {cut}", "utf-8")
        books.status = 1
        assert not course.build()
        assert page(course)[1] in (old, new), cut
        books.status = 0
        assert course.build(), cut
        assert page(course)[0] == {page(course)[1]}, cut
        assert int(page(course)[1]) == len(books), cut
        if ended:
            break
    assert ended
    assert sum(seen) == 1
    assert sorted(path.name for path in course.BUILD.iterdir()) == ["course.json", "html", "state"]


def test_plain_jupyter_book_does_not_pass_for_a_build_without_errors(course, books):
    course.build()
    page = course.PAGES / "index.html"
    os.utime(page, ns=(0, page.stat().st_mtime_ns + 1))
    course.build()
    assert [path.name for path in course.PAGES.glob("page*")] == ["page2.html"]


def test_pages_that_are_gone_are_built_again(course, books):
    course.build()
    shutil.rmtree(course.PAGES)  # as `jupyter-book clean .` does
    course.build()
    assert [path.name for path in course.PAGES.glob("page*")] == ["page2.html"]


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

    monkeypatch.setattr(course, "tee", tee)
    monkeypatch.setattr(course, "build", lambda: failing != "build")
    assert course.test("") == (failing is None)
    assert ran == ["ruff", "ruff", "mypy", "pytest", "pytest"]
    said = capsys.readouterr().out
    assert said.count("needs Chromium") == 2
    assert said.endswith("20 passed, 4 skipped\n")
    assert ("FAILED" in said) == (failing is not None)


def test_output_is_shown_and_kept(course, capfd):
    code = "print('=== 3 passed ===\\n'); raise SystemExit(1)"
    assert course.tee([sys.executable, "-c", code]) == (1, ["3 passed"])
    assert "=== 3 passed ===" in capfd.readouterr().out


# --- serve ---


@pytest.fixture
def url(course):
    """The address of a server with three files."""
    course.PAGES.mkdir(parents=True)
    (course.PAGES / "index.html").write_text("é" * 1000, "utf-8")
    (course.PAGES / "a.js").write_text("let a = 1;\n" * 100, "utf-8")
    (course.PAGES / "a.png").write_bytes(b"\x89PNG")
    with course.web_server(course.PAGES, 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def get(url, accept=""):
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept-Encoding": accept})) as reply:
        return reply.headers, reply.read()


def test_text_is_sent_compressed(course, url):
    headers, content = get(url, "gzip, br")
    assert (headers["Content-Encoding"], headers["Content-Type"]) == ("gzip", "text/html; charset=utf-8")
    assert len(content) == int(headers["Content-Length"]) < 100
    assert gzip.decompress(content) == (course.PAGES / "index.html").read_bytes()
    assert get(url + "a.js?v=1", "gzip")[0]["Content-Type"] == "text/javascript; charset=utf-8"


def test_a_changed_page_is_sent_as_it_is_now(course, url):
    get(url, "gzip")
    (course.PAGES / "index.html").write_text("new", "utf-8")
    assert gzip.decompress(get(url, "gzip")[1]) == b"new"


@pytest.mark.parametrize(("name", "accept"), [("", ""), ("a.png", "gzip")])
def test_other_content_is_sent_as_it_is(course, url, name, accept):
    headers, content = get(url + name, accept)
    assert headers["Content-Encoding"] is None
    assert content == (course.PAGES / (name or "index.html")).read_bytes()


def test_a_taken_port_is_named(course, url):
    port = int(url.split(":")[-1].strip("/"))
    with pytest.raises(SystemExit, match=f"--port {port + 1}"):
        course.serve(port)


@pytest.mark.parametrize("port", [80, 65535])
def test_the_port_proposed_can_be_used(course, monkeypatch, port):
    def refused(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(course, "web_server", refused)
    with pytest.raises(SystemExit, match=r"--port 8000$"):
        course.serve(port)


def test_every_pinned_package_runs_on_the_oldest_python_that_course_py_accepts():
    """The patch version matters: Debian 12 has Python 3.11.2, and a package may require 3.11.5."""
    pinned = re.findall(r"^([\w.-]+)==", SCRIPT.with_name("constraints.txt").read_text("utf-8"), re.MULTILINE)
    wanted = {}
    for name in pinned:
        with contextlib.suppress(metadata.PackageNotFoundError):  # only another system needs it
            wanted[name] = metadata.metadata(name).get("Requires-Python", "")
    assert len(wanted) > 100
    assert [name for name, versions in wanted.items() if not SpecifierSet(versions).contains("3.11.0")] == []
