"""Fold hints and solutions under a label, and mark solutions for the style sheet, which does not print them.

A solution is the answer cell of an exercise sheet, or an admonition or dropdown with the title Solution, which a
sheet calls Explanation. The code of an answer is shown without the marker lines for the release of the sheet.

An admonition of the class dropdown becomes a <details>, which the browser folds. The theme's script would fold it
after the page is shown, and move the text below.
"""

from docutils import nodes

TITLE = "Solution"
MARKERS = "### BEGIN SOLUTION", "### END SOLUTION"


class Fold(nodes.Element):
    """A box that is folded until the reader opens it."""


class Label(nodes.TextElement):
    """What is shown of a fold."""


def mark_solutions(app, doctree):
    answered = any("tag_answer" in cell["classes"] for cell in doctree.findall(nodes.container))
    for box in list(doctree.findall(nodes.container)) + list(doctree.findall(nodes.admonition)):
        if box.get("nb_element") == "cell_code":
            if "tag_answer" in box["classes"]:
                show_on_request(box)
        elif len(box) and isinstance(box[0], nodes.title | nodes.rubric) and box[0].astext() == TITLE:
            # until it becomes HTML, a dropdown keeps its classes elsewhere
            box.get("container_classes", box["classes"]).append("solution")
            if answered:  # the cell above it is called the solution
                box[0].children = [nodes.Text("Explanation")]
    for box in list(doctree.findall(nodes.admonition)):
        if "dropdown" in box["classes"]:
            title, *rest = box.children
            box.replace_self(Fold("", Label("", "", *title.children), *rest, **box.attributes))


def show_on_request(cell):
    cell["classes"].append("solution")
    cell["hide_mode"] = "input"
    cell["prompt_show"], cell["prompt_hide"] = "Show the solution", "Hide the solution"
    for code in cell.findall(nodes.literal_block):
        lines = [line for line in code.astext().split("\n") if line.strip() not in MARKERS]
        code.children = [nodes.Text("\n".join(lines))]
        code.rawsource = code.astext()


def tag(name, class_name):
    """What writes a node as this element of HTML."""
    return (
        lambda writer, node: writer.body.append(writer.starttag(node, name, "", CLASS=class_name)),
        lambda writer, node: writer.body.append(f"</{name}>\n"),
    )


def setup(app):
    app.add_node(Fold, html=tag("details", "admonition"))
    app.add_node(Label, html=tag("summary", "admonition-title"))
    app.connect("doctree-read", mark_solutions)
    return {"env_version": 2, "parallel_read_safe": True, "parallel_write_safe": True}
