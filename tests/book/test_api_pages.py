"""The pages of the package need only what readers install, and show the code of what they describe."""

import ast
import inspect
import pkgutil
import re
import shutil
import subprocess
import sys
from importlib import metadata

import pytest
import yaml
from bs4 import BeautifulSoup
from helpers import built, requirements
from helpers.small_book import copy_settings
from packaging.utils import canonicalize_name

from tools import checkout

# Build in a folder, in a Python that lacks the modules named.
WITHOUT = """
import sys
from pathlib import Path

class Absent:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[2:]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent)
sys.path.insert(0, sys.argv[1])
from tools import book
sys.exit(book.main(Path.cwd(), Path("out")))
"""


@pytest.fixture(scope="module")
def pages():
    """The main part of each API page, by name."""
    assert built.up_to_date()
    return read(checkout.PAGES)


def read(folder):
    paths = (folder / "book" / "api").glob("*.html")
    return {path.stem: BeautifulSoup(path.read_text("utf-8"), "html.parser").article for path in paths}


def listed(node):
    """The pages in a table of contents."""
    if isinstance(node, dict):
        return [name for key, value in node.items() for name in ([value] if key in ("file", "root") else listed(value))]
    return [name for part in node for name in listed(part)] if isinstance(node, list) else []


@pytest.fixture(scope="module")
def absent_modules():
    """The modules that are installed here, but not for a reader."""
    read = {"pip", *requirements.packages("requirements-book.txt")}
    owners = metadata.packages_distributions().items()
    return sorted(module for module, names in owners if read.isdisjoint(map(canonicalize_name, names)))


def test_the_pages_need_only_what_readers_install(pages, absent_modules, tmp_path):
    """The pages of the package, built again beside empty chapters."""
    assert {"cycler", "matplotlib", "torch", "jupyterlab", "resvg_py"} <= set(absent_modules)
    (tmp_path / "book" / "api").mkdir(parents=True)
    (tmp_path / "notebooks" / "exercises").mkdir(parents=True)
    shutil.copy(checkout.ROOT / "_toc.yml", tmp_path)
    copy_settings(tmp_path)
    for name in (
        "subnorm",
        "subnorm_lab",
        "subnorm_classroom",
        "book/_static",
        "book/subnorm_book",
        "book/references.bib",
    ):
        (tmp_path / name).symlink_to(checkout.ROOT / name)
    for name in listed(yaml.safe_load((tmp_path / "_toc.yml").read_text("utf-8"))):
        source = checkout.ROOT / f"{name}.md"
        text = source.read_text("utf-8") if name.startswith("book/api/") else "# Title\n"
        (tmp_path / f"{name}.md").write_text(text, "utf-8")
    run = [sys.executable, "-P", "-c", WITHOUT, checkout.ROOT, *absent_modules]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {name: str(page) for name, page in read(tmp_path / "out" / "html").items()} == {
        name: str(page) for name, page in pages.items()
    }


@pytest.mark.parametrize("name", ["numpy", "torch", "experiments"])
def test_every_signature_is_that_of_the_library(pages, name):
    """The mock of PyTorch in a build changes no signature."""
    entries = pages[name].select("dl.py.function > dt, dl.py.class > dt")
    assert entries
    for entry in entries:
        thing = pkgutil.resolve_name(entry["id"])
        bases = [base for base in getattr(thing, "__mro__", ()) if base.__module__.startswith("subnorm")]
        if inspect.isfunction(thing) or any("__init__" in vars(base) for base in bases):  # else PyTorch's own
            words = [word.text.split("=")[0].lstrip("*") for word in entry.select("em.sig-param")]
            shown = [word for word in words if word not in ("", "/")]
            assert shown == list(inspect.signature(thing).parameters), entry["id"]


def test_every_function_and_class_shows_its_code(pages):
    for name, page in pages.items():
        entries = page.select("dl.py.function > dd, dl.py.class > dd")
        assert entries, name
        for entry in entries:
            folds = entry.find_all("details", class_="code", recursive=False)
            assert len(folds) == 1, (name, entry.text[:80])
            ast.parse(folds[0].find("pre").text)


def test_the_code_repeats_no_docstring(pages):
    for page in pages.values():
        for fold in page.select("details.code"):
            code = ast.parse(fold.find("pre").text).body[0]
            assert len(code.body) == 1 or ast.get_docstring(code) is None, code.name


def test_a_chapter_that_a_docstring_names_is_a_link(pages):
    entry = pages["numpy"].find(id="subnorm.numpy.layer_norm_backward").find_next("dd")
    assert "../../notebooks/03a-layer-norm-backward.html" in [a["href"] for a in entry.select("a.reference")]
    for name, page in pages.items():
        for details in page.select("details, pre, h1, h2, h3"):
            details.extract()
        for a in page.select("a"):
            a.extract()
        assert not re.search(r"([Cc]hapter|[Dd]eep dive) \d\d", page.text), name
