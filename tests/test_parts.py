"""A test without its program is skipped with the program's name, or fails where everything must run."""

import pytest
from helpers import parts

from tools import browser


@pytest.fixture
def absent(monkeypatch):
    monkeypatch.setitem(parts.PARTS, "loom", (lambda: None, "Loom: apt install loom"))


def test_an_absent_program_is_a_named_skip(absent, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="needs Loom: apt install loom"):
        parts.need("loom")


def test_an_absent_program_is_a_failure_where_all_must_run(absent, monkeypatch):
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="needs Loom: apt install loom"):
        parts.need("loom")


def test_the_environment_names_a_browser(monkeypatch):
    monkeypatch.setenv("CHROMIUM", "/opt/chrome")
    assert parts.need("chromium") == "/opt/chrome"


def test_chromium_without_its_window_comes_first(monkeypatch):
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(parts.shutil, "which", "/usr/bin/{}".format)
    assert parts.need("chromium") == "/usr/bin/chromium-headless-shell"


def test_a_machine_without_triton_has_no_path(monkeypatch):
    monkeypatch.setattr(parts.importlib.util, "find_spec", lambda name: None)
    assert parts.triton_path() is None


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_a_machine_without_a_browser_has_no_path(monkeypatch, platform):
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(parts.sys, "platform", platform)
    monkeypatch.setattr(parts.shutil, "which", lambda name: None)
    monkeypatch.setattr(parts.Path, "is_file", lambda path: False)
    assert browser.chromium_path() is None
