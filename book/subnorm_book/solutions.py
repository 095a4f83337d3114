"""Fold solutions under a label, and mark them for the style sheet, which does not print them.

A solution is the answer cell of an exercise sheet, or an admonition or dropdown with the title Solution. The code of
an answer is shown without the marker lines for the release of the sheet.
"""

from docutils import nodes

TITLE = "Solution"
MARKERS = "### BEGIN SOLUTION", "### END SOLUTION"


def mark(app, doctree):
    for box in list(doctree.findall(nodes.container)) + list(doctree.findall(nodes.admonition)):
        if box.get("nb_element") == "cell_code":
            if "tag_answer" in box["classes"]:
                show_on_request(box)
        elif len(box) and isinstance(box[0], nodes.title | nodes.rubric) and box[0].astext() == TITLE:
            # until it becomes HTML, a dropdown keeps its classes elsewhere
            box.get("container_classes", box["classes"]).append("solution")


def show_on_request(cell):
    cell["classes"].append("solution")
    cell["hide_mode"] = "input"
    cell["prompt_show"], cell["prompt_hide"] = "Show the solution", "Hide the solution"
    for code in cell.findall(nodes.literal_block):
        lines = [line for line in code.astext().split("\n") if line.strip() not in MARKERS]
        code.children = [nodes.Text("\n".join(lines))]
        code.rawsource = code.astext()


def setup(app):
    app.connect("doctree-read", mark)
    return {"env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
