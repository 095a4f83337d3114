"""The settings that a record states are those of its module, for every record.

The module's own code says which they are: in the dictionary that begins with ``**stored.origin(...)``, each entry that
the module's constants alone determine is computed again and compared with the record. Where an entry was measured, its
names and lengths still follow from the constants.
"""

import ast
import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from subnorm import timing
from subnorm.timing import record as timing_record
from subnorm_lab.experiments import stored

RECORDS = sorted(stored.file("any").parent.glob("*.json"))
#: The calls that only rearrange constants
PLAIN = {"list", "tuple", "range", "repr", "round", "str", "items", "keys", "len"}
#: What a record says of the day and the machine
MEASURED = {"date", "command", "versions", "device", "load", "texts"}

Names = dict[str, Any]


def entries_of(module: str) -> ast.Dict:
    """The dictionary that the module's ``take`` stores."""
    tree = ast.parse(Path(str(importlib.import_module(module).__file__)).read_text("utf-8"))
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict) and node.keys[:1] == [None] and "origin(" in ast.unparse(node.values[0])
    ]
    assert len(found) == 1, f"{module} makes {len(found)} records"
    return found[0]


def constant(node: ast.AST, names: Names) -> bool:
    """Whether an expression has no other names than these, and measures nothing."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and part.id not in names and part.id not in PLAIN:
            return False
        if isinstance(part, ast.Call):
            called = part.func.attr if isinstance(part.func, ast.Attribute) else getattr(part.func, "id", "")
            if called not in PLAIN:
                return False
        if isinstance(part, ast.Lambda | ast.comprehension):
            return False
    return True


def value_of(node: ast.expr, names: Names) -> Any:
    return eval(compile(ast.Expression(node), "<record>", "eval"), {**names})


def bound(loop: ast.comprehension, names: Names) -> Iterator[Names]:
    """The names in each turn of a loop over constants."""
    for item in value_of(loop.iter, names):
        names = {**names, "_item": item}
        exec(compile(ast.unparse(loop.target) + " = _item", "<record>", "exec"), names)
        yield {**names}


def differences(node: ast.expr, found: Any, names: Names, where: str) -> Iterator[str]:
    """ "place: same" or "place: other" for each setting, with "other" for one that differs from the module's."""
    if isinstance(node, ast.Dict):
        for key, entry in zip(node.keys, node.values, strict=True):
            if key is not None:
                name = str(value_of(key, names))
                yield from differences(entry, found[name], names, f"{where}.{name}")
    elif isinstance(node, ast.DictComp) and constant(node.generators[0].iter, names):
        turns = list(bound(node.generators[0], names))
        if not node.generators[0].ifs:
            keys = [str(value_of(node.key, turn)) for turn in turns]
            yield f"{where}: " + ("same" if keys == list(found) else f"other names, {list(found)}")
            for name, turn in zip(keys, turns, strict=True):
                if name in found:
                    yield from differences(node.value, found[name], turn, f"{where}.{name}")
    elif isinstance(node, ast.ListComp) and constant(node.generators[0].iter, names):
        turns = list(bound(node.generators[0], names))
        yield f"{where}: " + ("same" if len(turns) == len(found) else f"other length, {len(found)}")
        for k, (turn, item) in enumerate(zip(turns, found, strict=False)):
            yield from differences(node.elt, item, turn, f"{where}[{k}]")
    elif constant(node, names):
        wanted = json.loads(json.dumps(value_of(node, names)))
        yield f"{where}: " + ("same" if wanted == found else f"other, {found!r}; the module has {wanted!r}")


def settings(path: Path, record: dict[str, Any]) -> list[str]:
    module = f"subnorm_lab.experiments.{path.stem}"
    return list(differences(entries_of(module), record, vars(importlib.import_module(module)), path.stem))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_the_settings_of_a_record_are_those_of_its_module(path: Path) -> None:
    record = stored.read(path)
    found = settings(path, record)
    assert [one for one in found if not one.endswith(": same")] == []
    compared = {one.split(": ")[0].split(".")[1].split("[")[0] for one in found}
    numbers = {key for key, value in record.items() if isinstance(value, int | float | str)}
    assert numbers - compared - MEASURED <= {"chance", "blind"}, "a setting that no constant of the module gives"


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_another_setting_would_be_noticed(path: Path) -> None:
    """Change each stored setting in turn."""
    record = stored.read(path)
    known = {one.split(": ")[0].split(".")[1].split("[")[0] for one in settings(path, record)} - {"versions"}
    for name in known:
        value = record[name]
        if isinstance(value, dict | list):
            changed: Any = dict(list(value.items())[1:]) if isinstance(value, dict) else value[:-1]
        else:
            changed = value + 1 if isinstance(value, int | float) else f"{value}!"
        try:
            found = settings(path, {**record, name: changed})
        except KeyError:
            continue
        assert [one for one in found if not one.endswith(": same")], name


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_record_says_its_day_its_versions_and_its_command(path: Path) -> None:
    record = stored.read(path)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", record["date"])
    assert set(record["versions"]) >= {"python", "torch", "numpy", "subnorm"}
    command = rf"(OPENBLAS_NUM_THREADS=1 )?python -m subnorm_lab\.experiments\.{path.stem}( all)?"
    assert re.fullmatch(command, record["command"])


def test_the_tables_of_a_timing_record_are_those_of_the_plan_that_its_command_names() -> None:
    for record in timing.read_records():
        plan = timing_record.PLAN[record["device"]["kind"]]
        named = [name for name in plan if name in record["command"].split()] or list(plan)
        assert [(t["name"], tuple(t["shape"])) for t in record["tables"]] == [
            (name, shape) for name in named for shape in plan[name]
        ]
        assert {table["dtype"] for table in record["tables"]} <= set(timing_record.DTYPES[record["device"]["kind"]])
        rounds = {len(row["rounds"]) for table in record["tables"] for row in table["rows"].values() if row["rounds"]}
        assert rounds == {timing_record.FEWEST}
