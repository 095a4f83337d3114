"""Thirty hand-ins of sheet ex01 as students really make them, in the form in which each platform saves them."""

import io
import json
from pathlib import PurePosixPath

from classroom.hand_ins import cell, notebook, write_zip

from subnorm_classroom.grading.archives import clean
from subnorm_classroom.grading.cells import defines, solution_of
from subnorm_classroom.reports.gradebook import letters
from subnorm_lab.checks import SETS

SHEET = "ex01"
FILE = "ex01-residuals.ipynb"
NAMES = [
    "Ada Lovelace", "Zoë Ångström", "Liam O'Neil", "李 小龍", "Anne-Marie Curie", "Bo Li", "Cy Young", "Dana Scott",
    "Edsger Dijkstra", "Fran Allen", "Grace Hopper", "Hedy Lamarr", "Ivan Sutherland", "Jean Bartik",
    "Katherine Johnson", "Lotfi Zadeh", "Mary Jackson", "Niklaus Wirth", "Ole Nygaard", "Peter Naur", "Quinn Xu",
    "Radia Perlman", "Shafi Goldwasser", "Tony Hoare", "Ursula Franklin", "Vint Cerf", "Wendy Hall", "Xiaoyun Wang",
    "Yukihiro Matz", "Zhores Alferov",
]  # fmt: skip
MISTAKES = {
    "residual": ["no_skip", "branch_lost"], "stream": ["edits", "edits", "no_first"],
    "projected_residual": ["none_is_no_skip"], "scaled_stream": ["no_root", "no_root", "by_width"],
    "residual_backward": ["no_identity"], "paths": ["by_length"], "logit_shares": ["own_rstd", "own_rstd", "no_norm"],
}  # fmt: skip
LATE = ("Bo Li", "Tony Hoare")
NOTHING = "Cy Young"  # only a checkpoint
SEVERAL = "Dana Scott"  # two notebooks with other code
NEAR = "Grace Hopper"  # a name that is nearly right


def answered_sheet(who):
    """The sheet of a student: solutions, mistakes, and what is not done at the end of the sheet."""
    k = NAMES.index(who)
    cells = []
    for one in solution_of(SHEET):
        source = one.source
        for ex in SETS[SHEET]:
            if defines(ex.name, one):
                wrong = MISTAKES[ex.name]
                if k % 3 == 1 and ex.number % 3 == k % 2:
                    (tag,) = [m for m in ex.mistakes if m.tag == wrong[k % len(wrong)]]
                    source = tag.answer.text
                if k % 4 == 2 and ex.number > 5:
                    source = f"def {ex.name}(*args):\n    raise NotImplementedError  # your code here\n"
                if who == NEAR:
                    source = source.replace(f"def {ex.name}(", f"def {ex.name.replace('_', '')}(")
        cells.append(cell(source, *one.tags))
    return notebook(*cells)


def with_large_output(book):
    """The same notebook, with a large output and a note."""
    book = json.loads(book)
    book["cells"][-1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "0.5 " * 100_000}]
    return json.dumps(book).encode()


def zipped(members):
    data = io.BytesIO()
    write_zip(data, members)
    return data.getvalue()


def uploads(who):
    """(name, bytes) of what a student uploads."""
    k, book = NAMES.index(who), answered_sheet(who)
    if who == NOTHING:
        return [(f".ipynb_checkpoints/{FILE}", book)]
    if who == SEVERAL:
        return [(FILE, book), ("ex01-residuals (1).ipynb", answered_sheet(NAMES[0]))]
    if k == 8:
        return [(FILE + ".txt", book)]
    if k == 9:  # the whole folder
        environment = [(f"ex01/.venv/lib/python3.11/site-packages/p/{j}.py", b"") for j in range(3000)]
        return [("ex01.zip", zipped([*environment, (f"ex01/{FILE}", book), ("__MACOSX/ex01/._x.ipynb", b"")]))]
    if k == 11:
        return [(FILE, book), ("ex01-residuals (1).ipynb", with_large_output(book))]
    return [(FILE, with_large_output(book) if k == 12 else book)]


def moodle():
    """(download, gradebook) of Moodle: its zip and its grading worksheet."""
    members, rows = [], []
    for k, who in enumerate(NAMES):
        name = who.replace("'", "")
        members += [(f"{name}_{4700 + k}_assignsubmission_file/{path}", data) for path, data in uploads(who)]
        time = "Saturday, 21 November 2026, 7:12 AM" if who in LATE else "Friday, 20 November 2026, 4:05 PM"
        rows.append(f'"Participant {4700 + k}","{who}",s{k}@x.edu,"Submitted for grading",,15.00,Yes,"{time}",-,')
    rows.append('"Participant 4799","Al Absent",al@x.edu,"No submission",,15.00,Yes,-,-,')
    head = "Identifier,Full name,Email address,Status,Grade,Maximum grade,Grade can be changed,"
    head += "Last modified (submission),Last modified (grade),Feedback comments"
    return zipped(members), "\ufeff" + "\r\n".join([head, *rows, ""])


def canvas():
    """(download, gradebook) of Canvas. It has no folders: a hidden folder does not come."""
    members, rows = [], []
    for k, who in enumerate(NAMES):
        first, _, last = who.partition(" ")
        late = "LATE_" if who in LATE else ""
        for j, (path, data) in enumerate(uploads(who)):
            name = PurePosixPath(path).name
            members.append((f"{letters(clean(last + first))}_{late}{100 + k}_{9000 + 10 * k + j}_{name}", data))
        rows.append(f'"{last}, {first}",{100 + k},S-{k},s{k},Sec 1,')
    heads = ["Student,ID,SIS User ID,SIS Login ID,Section,Lab ex01 (4242)", "    Points Possible,,,,,15.00"]
    return zipped(members), "\r\n".join([*heads, *rows, ""])


def nbgrader():
    """(download, gradebook) of nbgrader: the folder `submitted`, zipped, and its export."""
    members, rows = [], []
    for k, who in enumerate(NAMES):
        login = f"s{k:02}"
        hour = "21 06" if who in LATE else "20 15"
        notes = [("timestamp.txt", f"2026-11-{hour}:05:00.000000 UTC".encode()), ("submission_secret.txt", b"s3")]
        members += [(f"submitted/{login}/{SHEET}/{path}", data) for path, data in [*uploads(who), *notes]]
        rows.append(f"{SHEET},,,{login},{who.split()[1]},{who.split()[0]},,0.0,0.0,0.0,15.0")
    head = "assignment,duedate,timestamp,student_id,last_name,first_name,email,raw_score,late_submission_penalty,score,"
    return zipped(members), "\n".join([f"{head}max_score", *rows, ""])


PLATFORMS = {"moodle": moodle, "canvas": canvas, "nbgrader": nbgrader}
