"""Files around the course are accurate: versions, links, commands, workflows, and the repository's address."""

import datetime
import re
import shlex
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from subnorm_book.output import repository_links

import course

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
GUIDES = ["README.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
RELEASE = re.compile(r"^## (\d+\.\d+\.\d+)\n\n(\d{4}-\d\d-\d\d), tag `(\S+)`\n", re.MULTILINE)
SCRIPTS = {".ci/run", ".ci/colab", "tools/sources.py"}


def text(name):
    return (ROOT / name).read_text("utf-8")


def files():
    """The files that people edit, without environments, caches and builds."""
    for path in ROOT.iterdir():
        if path.is_file():
            yield path
        elif path.name in (
            ".ci",
            ".github",
            "book",
            "notebooks",
            "subnorm",
            "subnorm_lab",
            "subnorm_classroom",
            "tests",
            "tools",
        ):
            yield from (file for file in path.rglob("*") if file.is_file() and "__pycache__" not in file.parts)


# --- the repository's address


def test_the_address_of_the_repository_is_in_one_place():
    (address,) = re.findall(r'^(?:# )?Repository = "(https://[^"]+)"', text("pyproject.toml"), flags=re.MULTILINE)
    needle = address.removeprefix("https://").lower().encode()
    counts = {path.relative_to(ROOT).as_posix(): path.read_bytes().lower().count(needle) for path in files()}
    assert {name: n for name, n in counts.items() if n} == {"pyproject.toml": 1}


@pytest.mark.parametrize(("line", "address"), [("", None), ('Repository = "https://forge.example/o/n"', "o/n")])
def test_the_pages_link_to_the_repository_once_it_has_an_address(tmp_path, line, address):
    (tmp_path / "pyproject.toml").write_text(f"[project]\n[project.urls]\n{line}\n", "utf-8")
    options = {"logo": "kept"}
    repository_links.add_links(SimpleNamespace(srcdir=tmp_path), SimpleNamespace(html_theme_options=options))
    assert options.pop("logo") == "kept"
    assert bool(options) == bool(address)
    assert not address or options["repository_url"].endswith(address)


# --- versions


def test_the_version_is_the_newest_in_the_changelog():
    releases = RELEASE.findall(text("book/changelog.md"))
    headings = re.findall("^## (.*)", text("book/changelog.md"), flags=re.MULTILINE)
    assert [release[0] for release in releases] == [heading for heading in headings if heading != "Unreleased"]
    assert headings.index(PROJECT["version"]) == (headings[0] == "Unreleased")
    assert [tag for _, _, tag in releases] == [f"v{version}" for version, _, _ in releases]
    order = [(datetime.date.fromisoformat(day), *map(int, version.split(".")), version) for version, day, _ in releases]
    assert order == sorted(order, reverse=True)


def test_the_citation_is_of_the_newest_version():
    citation = yaml.safe_load(text("CITATION.cff"))
    (version, day, _), *_ = RELEASE.findall(text("book/changelog.md"))
    assert (citation["version"], str(citation["date-released"])) == (version, day)
    assert citation["title"] == yaml.safe_load(text("_config.yml"))["title"]
    assert citation["authors"] == PROJECT["authors"]


def test_commits_are_checked_with_the_pinned_ruff():
    hooks = [hook for repo in yaml.safe_load(text(".pre-commit-config.yaml"))["repos"] for hook in repo["hooks"]]
    versions = {pin for hook in hooks for pin in hook.get("additional_dependencies", []) if re.match("ruff(==|$)", pin)}
    assert versions == set(re.findall(r"^ruff==\S+", text("requirements-dev.txt"), flags=re.MULTILINE))


def test_no_update_to_a_product_that_cannot_read_the_book():
    updates = yaml.safe_load(text(".github/dependabot.yml"))["updates"]
    ignored = {rule["dependency-name"]: rule["versions"] for update in updates for rule in update.get("ignore", [])}
    assert ignored["jupyter-book"] == [">= 2"]


# --- paths and links


@pytest.mark.parametrize("name", GUIDES)
def test_every_link_of_a_guide_leads_to_a_file(name):
    local = [target for target in re.findall(r"\]\(([^)#]+)\)", text(name)) if not re.match(r"\w+:", target)]
    assert [target for target in local if not (ROOT / target).is_file()] == []


@pytest.mark.parametrize("name", GUIDES)
def test_every_path_of_a_guide_is_there(name):
    paths = re.findall(r"`([\w.-]+/[\w./-]*|[\w.-]+\.(?:py|md|yml|toml|cff|txt))`", text(name))
    made = {".venv/bin/python", "_pack/"}  # by a command
    assert [path for path in paths if path not in made and not (ROOT / path).exists()] == []


def test_the_readme_names_every_room_of_the_packages():
    rooms = {f"{path.parent.relative_to(ROOT).as_posix()}/" for path in ROOT.glob("subnorm*/*/__init__.py")}
    assert {room for room in rooms if f"`{room}`" not in text("README.md")} == set()


def test_contributing_is_read_in_one_sitting():
    lines = text("CONTRIBUTING.md").split("\n")
    assert len(lines) <= 120
    assert [line for line in lines if len(line) > 120] == []


def test_the_package_is_read_in_one_sitting():
    assert sum(len(path.read_text("utf-8").splitlines()) for path in ROOT.glob("subnorm/**/*.py")) <= 4300


# --- commands


class Reached(Exception):
    """Raised when the command line has been accepted, instead of running the command."""


@pytest.fixture
def fault(monkeypatch, capsys):
    """The fault of a command of course.py, of a script, or of pytest; None if it would run."""

    def reached(*_, **__):
        raise Reached

    monkeypatch.setattr(course.install, "install", reached)

    def fault(line):
        words = shlex.split(line.split(" > ")[0].replace("${{ matrix.python }}", ".venv/bin/python"))
        if words[0] in ("python", "python3", ".venv/bin/python"):
            words = words[1:]
        if words[0] == "course.py":
            try:
                course.main(words[1:])
            except Reached:
                return None
            except SystemExit:
                return capsys.readouterr().err.strip().split("\n")[-1]
            return f"{line} did nothing"
        if words[:2] == ["-m", "pytest"]:
            return next((f"there is no {path}" for path in words[2:] if not (ROOT / path).is_file()), None)
        known = words[0] in SCRIPTS and len(words) == 1 and (ROOT / words[0]).is_file()
        return None if known else f"{line} is neither a command of course.py nor a known script"

    return fault


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_step_of_a_workflow_is_a_command_that_exists(path, fault):
    lines = [
        line for step in steps(yaml.safe_load(path.read_text("utf-8"))) for line in step.get("run", "").split("\n")
    ]
    lines = [line for line in lines if line]
    assert [problem for problem in map(fault, lines) if problem] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_action_is_pinned_to_a_commit(path):
    used = re.findall(r"uses: (.*)", path.read_text("utf-8"))
    assert used
    assert [action for action in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)] == []


def test_the_workflows_are_there():
    assert {path.stem for path in WORKFLOWS} == {"links", "test"}


@pytest.mark.parametrize("name", GUIDES[:2])
def test_every_command_of_a_guide_exists(name, fault):
    found = re.findall(r"python3 course\.py[^`\n|]*|\.venv/bin/python -m pytest [^`\n]*", text(name))
    assert len(found) >= 3
    assert [problem for problem in map(fault, found) if problem] == []


@pytest.mark.parametrize(
    "line",
    [
        "python course.py biuld",
        "python course.py build --fast",
        "python3 course.py serve --port http",
        "make html",
        "tools/none.py",
        "${{ matrix.python }} -m pytest notebooks/00-nothing.ipynb",
    ],
)
def test_a_wrong_command_is_found(line, fault):
    assert fault(line)


def test_every_cited_thread_is_an_address(capsys):
    from tools import sources

    sources.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 100
    assert [line for line in lines if not re.fullmatch(r"https://[\w.-]+/\S+", line)] == []
