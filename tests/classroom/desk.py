"""A folder of grades, as `grade` leaves it, without grading anything."""

from subnorm_classroom.files import as_json
from subnorm_classroom.reports.publication import publish
from subnorm_classroom.reports.records import read_records


def result(exercise="stream", points=2, most=3, diagnosis="value", says="on a batch, the values are not right."):
    return {"exercise": exercise, "points": points, "max_points": most, "diagnosis": diagnosis, "says": says}


def record(student, *handed_in, results=None, problem="", late="", **notes):
    return {
        "student": student, "file": handed_in[0] if handed_in else "", "sha256": "1", "key": "k", "problem": problem,
        "flags": [], "results": results or [result(), result("paths", 4, 4, "right", "right on all 3 inputs.")],
        "handed_in": list(handed_in), "notes": notes, "late": late,
    }  # fmt: skip


def desk(out, *records, finished=True):
    (out / "students").mkdir(parents=True)
    for k, one in enumerate(records):
        (out / "students" / f"{k}.json").write_text(as_json(one), "utf-8")
    log = {"set": "ex01", "seed": 7, "finished": finished, "students": {}}
    (out / "log.json").write_text(as_json(log), "utf-8")
    publish(out, "ex01", read_records(out), {})
    return out
