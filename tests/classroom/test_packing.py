"""A student installs NumPy and the checks, and more only for an exercise that needs it."""

import email
import io
import json
import re
import subprocess
import sys
import zipfile

import pytest
from packaging.requirements import Requirement

from subnorm_classroom.sheets import packing, student_sheet
from subnorm_lab import checks

ROOT = student_sheet.ROOT
NEEDS_TORCH = [name for name, exercises in checks.SETS.items() if any(e.way == "module" for e in exercises)]
# The process cannot import any of these.
WITHOUT = "import sys; sys.modules.update(dict.fromkeys(('torch', 'matplotlib', 'PIL', 'IPython', 'py_mini_racer')))\n"


@pytest.fixture(scope="module")
def wheel():
    """The wheel in the zip."""
    _, content = packing.wheel_of(ROOT)
    with zipfile.ZipFile(io.BytesIO(content)) as found:
        yield found


@pytest.fixture(scope="module")
def metadata(wheel):
    name = next(name for name in wheel.namelist() if name.endswith("METADATA"))
    return email.message_from_bytes(wheel.read(name))


def test_the_trained_model_comes_with_its_licence(wheel):
    folder = "subnorm_lab/stories/data"
    assert (ROOT / folder / "LICENSE-tinyllamas").is_file()
    for path in (ROOT / folder).iterdir():
        assert wheel.read(f"{folder}/{path.name}") == path.read_bytes()


def installed(metadata, *extras):
    """The packages that pip installs with the wheel, on Linux."""
    needed = map(Requirement, metadata.get_all("Requires-Dist"))
    environments = [{"extra": extra, "sys_platform": "linux"} for extra in extras or ("",)]
    return {one.name for one in needed if not one.marker or any(map(one.marker.evaluate, environments))}


def test_the_package_brings_numpy_alone(metadata):
    assert installed(metadata) == {"numpy"}


def test_each_extra_brings_what_it_says(metadata):
    assert set(metadata.get_all("Provides-Extra")) == {"torch", "figures", "gpu", "classroom", "cluster"}
    assert installed(metadata, "torch") == {"numpy", "torch"}
    assert installed(metadata, "figures") == {"numpy", "matplotlib", "pillow", "ipython", "mini-racer", "resvg-py"}
    assert installed(metadata, "gpu") == {"numpy", "triton"}
    assert installed(metadata, "classroom") == {"numpy", "ipython"}
    assert installed(metadata, "cluster") == {"numpy", "ipython", "distributed"}


def test_the_course_installs_the_package_with_all_that_its_pages_need():
    assert "\n-e .[torch,figures]\n" in (ROOT / "requirements.txt").read_text("utf-8")


def files(name, folder):
    """The files of a zip, made in a folder with all its inputs."""
    for file in ("pyproject.toml", "constraints.txt", "LICENSE", "LICENSE-text"):
        (folder / file).write_bytes((ROOT / file).read_bytes())
    with zipfile.ZipFile(
        packing.write_zip(folder, name, "sheet.ipynb", {"sheet.ipynb": b"{}"}, checks.SETS[name])
    ) as found:
        return {
            path.split("/")[-1]: found.read(path).decode() for path in found.namelist() if path[-3:] in (".md", "txt")
        }


@pytest.mark.parametrize("name", checks.SETS)
def test_a_sheet_installs_torch_only_for_an_exercise_that_needs_it(tmp_path, name):
    found = files(name, tmp_path)
    wheel = found["requirements.txt"].split("\n")[-2]
    assert wheel.endswith(".whl[torch]" if name in NEEDS_TORCH else ".whl")
    assert ("PyTorch with CUDA" in found["HOW-TO.md"]) == (name in NEEDS_TORCH)
    assert ("does not install PyTorch" in found["HOW-TO.md"]) == (name not in NEEDS_TORCH)


@pytest.mark.parametrize("name", checks.SETS)
def test_a_sheet_says_what_it_needs_and_imports_nothing_else(name):
    sheet = json.loads(next((ROOT / "notebooks/exercises/student").glob(f"{name}-*.ipynb")).read_text("utf-8"))
    said = "".join(sheet["cells"][0]["source"])
    assert ("PyTorch for exercise" if name in NEEDS_TORCH else "PyTorch is not needed.") in said
    code = "\n".join("".join(cell["source"]) for cell in sheet["cells"] if cell["cell_type"] == "code")
    found = {name.split(".")[0] for name in re.findall(r"^\s*(?:import|from) ([\w.]+)", code, flags=re.MULTILINE)}
    ours = {"subnorm", "subnorm_lab"}
    assert found - sys.stdlib_module_names - ours == {"numpy"} | ({"torch"} if name in NEEDS_TORCH else set())
    assert "subnorm_lab" in found


def test_the_checks_judge_right_answers_where_there_is_numpy_alone():
    code = WITHOUT + (
        "from subnorm_lab import checks\n"
        "for exercises in checks.SETS.values():\n"
        "    for exercise in exercises:\n"
        "        assert exercise.way == 'module' or exercise(exercise.reference), exercise.name\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("✓") == sum(e.way != "module" for exercises in checks.SETS.values() for e in exercises)


def test_a_file_in_a_zip_is_like_one_of_unix_on_every_system():
    with zipfile.ZipFile(io.BytesIO(packing.zipped({"a.txt": b"a"}))) as archive:
        entry = archive.getinfo("a.txt")
    assert (entry.create_system, entry.external_attr >> 16, entry.date_time[0]) == (3, 0o100644, 1980)


def test_a_course_for_nbgrader_keeps_its_settings(tmp_path):
    source, config = packing.write_nbgrader(tmp_path, "ex01", "sheet.ipynb", "{}")
    assert (source, source.read_text("utf-8")) == (tmp_path / "source/ex01/sheet.ipynb", "{}")
    assert config.read_text("utf-8") == packing.NBGRADER
    config.write_text("mine", "utf-8")
    assert packing.write_nbgrader(tmp_path, "ex01", "sheet.ipynb", "[]") == [source, config]
    assert (source.read_text("utf-8"), config.read_text("utf-8")) == ("[]", "mine")
