"""Pack dist/SET.zip for students, and a course for nbgrader: the same bytes on every run."""

import base64
import hashlib
import io
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from subnorm_lab import _files
from subnorm_lab.checks.exercise import Exercise, totals

HOW_TO = """\
# {name}: how to work on it, and hand it in

{totals}. You need Python 3.11 or newer.

1. In this folder: `python3 -m venv .venv`, then `.venv/bin/python -m pip install -r requirements.txt`
   (on Windows `.venv\\Scripts\\python`). {torch}
2. {own}`.venv/bin/python -m jupyter lab {notebook}` opens the sheet.
3. Replace each `raise NotImplementedError` with your code, and run the check below it to get feedback.
   `checks.progress()` in a cell of your own lists which exercises are right and which are left.
4. At the end: Kernel > Restart Kernel and Run All Cells. A cell that needs another one must come after it.
5. Save, and hand in {notebook}, under this name, in the way your teacher told you.

The sheet links to chapters of the course, which are in the folder `chapters` for you to read. To run them as well, add
`"./{wheel}[torch,figures]"` to the command that installs the sheet's requirements.

Your teacher's grader runs your functions on other inputs than the checks do. It looks only at your functions: extra
cells do no harm, and changing or deleting a check makes no difference. {credit}
"""
WITH_TORCH = """\
On Linux, pip installs PyTorch with CUDA, which is several GB; for the
   CPU build add `--extra-index-url https://download.pytorch.org/whl/cpu`."""
WITHOUT_TORCH = """\
It does not install PyTorch, because no exercise needs it. If you want
   to answer in PyTorch, add `torch` to that command."""
REQUIREMENTS = """\
# The sheet's requirements, at the versions it was tested with. Run pip in this folder.
-c constraints.txt
jupyterlab
./{wheel}{extras}
"""
#: requirements besides NumPy, by the way an exercise calls its answer: an extra of the package, and its name
EXTRAS = {"module": ("torch", "PyTorch")}
NBGRADER = '''\
"""A course for nbgrader, written by `python -m subnorm_classroom release --nbgrader`. Run nbgrader in this folder."""

import os

os.environ["SUBNORM_CHECKS"] = "raise"  # inherited by the kernels: a wrong answer raises, and loses its points

c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "subnorm"
c.ClearSolutions.code_stub = {"python": "raise NotImplementedError  # your code here"}
c.OverwriteCells.add_missing_cells = True  # otherwise a deleted check needs manual grading
'''


def write_zip(root: Path, name: str, notebook: str, sheet: Mapping[str, bytes], exercises: Sequence[Exercise]) -> Path:
    """Make dist/SET.zip in a checkout, or dist/SET-install.zip without a sheet, and return its path.

    Args:
        root: the checkout.
        name: the set.
        notebook: the file name of the sheet.
        sheet: the sheet and its chapters, by their paths; only the chapters if each student gets their own sheet.
        exercises: the exercises of the set.
    """
    wheel, content = wheel_of(root)
    extras = sorted({EXTRAS[e.way][0] for e in exercises if e.way in EXTRAS})
    torch = WITH_TORCH if "torch" in extras else WITHOUT_TORCH
    files = {
        **sheet,
        "HOW-TO.md": HOW_TO.format(
            name=name,
            notebook=notebook,
            totals=totals(exercises),
            torch=torch,
            credit=credit(exercises),
            wheel=wheel,
            own="" if notebook in sheet else "Put your own sheet into this folder. ",
        ).encode(),
        "requirements.txt": REQUIREMENTS.format(wheel=wheel, extras=f"[{','.join(extras)}]" if extras else "").encode(),
        "constraints.txt": (root / "constraints.txt").read_bytes(),
        wheel: content,
    }
    path = root / "dist" / f"{name}{'' if notebook in sheet else '-install'}.zip"
    path.parent.mkdir(exist_ok=True)
    _files.write(path, zipped({f"{name}/{file}": files[file] for file in files}))
    return path


def credit(exercises: Sequence[Exercise]) -> str:
    """The sentence about points for a wrong answer."""
    partial = ", ".join(f"`{ex.name}`" for ex in exercises if ex.partial)
    if not partial:
        return "A function is right or it is not; there is no\npartial credit."
    return f"A function is right or it is not;\nbut a wrong {partial} earns its share of right inputs."


def needs(exercises: Sequence[Exercise]) -> str:
    """The sentence about what to install: PyTorch only if an exercise needs it."""
    more = [f"{EXTRAS[e.way][1]} for exercise {k}" for k, e in enumerate(exercises, 1) if e.way in EXTRAS]
    return (
        "You need Python 3.11 or newer, with JupyterLab, NumPy and the package `subnorm`"
        + (f", and {', '.join(more)}. " if more else ". PyTorch is not needed. ")
        + "In the folder of the zip,\n`pip install -r requirements.txt` installs them."
    )


def write_nbgrader(folder: Path, name: str, notebook: str, text: str) -> list[Path]:
    """Add one set to a course for nbgrader; an existing config stays as it is."""
    source = folder / "source" / name / notebook
    source.parent.mkdir(parents=True, exist_ok=True)
    _files.write(source, text)
    config = folder / "nbgrader_config.py"
    if not config.exists():
        _files.write(config, NBGRADER)
    return [source, config]


def zipped(files: dict[str, bytes]) -> bytes:
    """A zip with fixed times, not compressed, because zlib's output depends on its version."""
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w", zipfile.ZIP_STORED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)  # dated 1980
            entry.create_system, entry.external_attr = 3, 0o100644 << 16  # Unix attributes on every system
            archive.writestr(entry, content)
    return result.getvalue()


#: The packages that a student needs; the teacher's stays out of the zip.
STUDENTS = ("subnorm", "subnorm_lab")


def wheel_of(root: Path) -> tuple[str, bytes]:
    """(name, content) of the package's wheel, so that a sheet needs no package index for it."""
    settings = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    project = settings["project"]
    patterns = ["*.py", *settings["tool"]["setuptools"]["package-data"]["*"]]
    paths = {path for pattern in patterns for name in STUDENTS for path in (root / name).rglob(pattern)}
    files = {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(paths)}
    info = f"{project['name']}-{project['version']}.dist-info"
    fields = {"Metadata-Version": "2.4", "Name": project["name"], "Version": project["version"]}
    lines = [f"{key}: {value}" for key, value in fields.items()]
    lines += [f"Requires-Python: {project['requires-python']}"]
    lines += [f"Requires-Dist: {needed}" for needed in project["dependencies"]]
    for extra, names in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        for needed, _, marker in (name.partition(";") for name in names):
            both = [f"({marker.strip()})"] if marker else []
            lines.append(f"Requires-Dist: {needed}; " + " and ".join([*both, f"extra == '{extra}'"]))
    files |= {f"{info}/licenses/{name}": (root / name).read_bytes() for name in project["license-files"]}
    files[f"{info}/METADATA"] = "\n".join([*lines, ""]).encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: subnorm\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = [f"{name},sha256={digest(content)},{len(content)}" for name, content in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    return f"{project['name']}-{project['version']}-py3-none-any.whl", zipped(files)


def digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
