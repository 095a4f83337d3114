"""A class of which we know what it has misunderstood: the records that grading would leave, without grading."""

from classroom.desk import record, result

from subnorm_classroom.files import as_json
from subnorm_lab.checks import SETS


def graded(out, sheet, many, planted, name="Student {:03}", seed=7, first=0, **more):
    """A folder of grades of `many` students.

    Args:
        out: the folder.
        sheet: "ex02".
        many: how many students.
        planted: for an exercise, how many students make which mistakes: {"layer_norm": {"ddof1": 9}}. A name in
            `STRANGE` is an unknown answer.
        name: of a student, by number.
        seed: in the log.
        first: number of the first student.
        more: records to add, by file name.
    """
    (out / "students").mkdir(parents=True)
    columns = []
    for k, ex in enumerate(SETS[sheet]):
        answers = [one for tag, times in planted.get(ex.name, {}).items() for one in times * [answer(ex, tag)]]
        answers += (many - len(answers)) * [answer(ex, "right")]
        assert len(answers) == many
        columns.append(answers[k:] + answers[:k])  # not the same students in every exercise
    for k, results in enumerate(zip(*columns, strict=True)):
        who = name.format(first + k)
        one = record(who, f"{who}/lab of {who}.ipynb", results=[dict(r) for r in results])
        (out / f"students/{k:04}.json").write_text(as_json(one), "utf-8")
    for stem, one in more.items():
        (out / f"students/{stem}.json").write_text(as_json(one), "utf-8")
    log = {"set": sheet, "seed": seed, "finished": True, "students": {}, "versions": {"code": "c"}}
    (out / "log.json").write_text(as_json(log), "utf-8")
    return out


NORMAL = "on a (3, 8) batch, the values are not right. It is true that each row has mean beta."
#: Unknown answers: diagnosis, sentence, traces.
STRANGE = {
    "half": ("value", NORMAL, [["float64 (3, 8)", 0, 0.5, 0.125], ["float64 (8,)", 0, 0.5, 0.0625]]),
    "half, rounded": ("value", NORMAL, [["float64 (3, 8)", 0, 0.500001, 0.125], ["float64 (8,)", 0, 0.5, 0.0625]]),
    "half, cut short": ("value", NORMAL, [["float64 (3, 8)", 0, 0.5, 0.125]]),
    "twice": ("value", NORMAL, [["float64 (3, 8)", 0, 2.0, 0.5], ["float64 (8,)", 0, 2.0, 0.25]]),
    "raises": ("error", "on a (3, 8) batch, it raises ValueError in line 3 of its cell.", [["ValueError", "ab"]]),
    "raises lower": ("error", "on a (3, 8) batch, it raises ValueError in line 7 of its cell.", [["ValueError", "ab"]]),
    "raises else": ("error", "on a (3, 8) batch, it raises ValueError in line 3 of its cell.", [["ValueError", "cd"]]),
}


def answer(ex, tag):
    """The result of an exercise with this diagnosis, or of a strange answer."""
    if tag in STRANGE:
        diagnosis, says, does = STRANGE[tag]
        return {**result(ex.name, 0, ex.level, diagnosis, says), "does": does}
    return result(ex.name, ex.level if tag == "right" else 0, ex.level, tag, "as the checks say it")


#: What 40 students do on sheet ex02. Behind most lost points: eps (16), words that share a mean (12), std (8).
EX02 = {
    "layer_norm": {"eps_outside": 7, "no_eps": 3, "ddof1": 4, "axis1": 2, "keepdims": 1, "float16": 1},
    "invariances": {"watched_itself": 5, "not_done": 2},
    "make_layer_norm": {"unbiased": 2, "eps_outside": 3, "cell_error": 1},
    "layer_norm_backward": {
        "half": 2, "half, rounded": 1, "twice": 2, "raises": 1, "raises lower": 1, "raises else": 1, "timeout": 2,
    },
}  # fmt: skip
