"""The way through the book: from chapter to chapter, with the deep dives as side roads.

A chapter is a notebook whose number is digits alone (03-layer-normalization); a deep dive has a letter too (03a).
Above a title are the place of the page in the book and its minutes; the line of what a chapter needs names the next
one, too. Its deep dives are offered as cards below its summary. *Next*
leads to the next chapter, from a deep dive too; below it are the deep dives that the reader passes by
(`_templates/components/prev-next.html`).
"""

import re

from docutils import nodes

NUMBER = re.compile(r"notebooks/(\d\d)([a-z]?)-")


def chapter_number(docname):
    """("03", "a") for notebooks/03a-layer-norm-backward, ("03", "") for its chapter, None for any other page."""
    found = NUMBER.match(docname)
    return found.groups() if found else None


def numbered_pages(env):
    """{document: (chapter, letter)} of chapters and deep dives, in order."""
    return {doc: chapter_number(doc) for doc in sorted(env.all_docs) if chapter_number(doc)}


def add(app, doctree, docname):
    if not chapter_number(docname) or app.builder.format != "html":
        return
    every, (chapter, letter) = numbered_pages(app.env), chapter_number(docname)
    last = max(every.values())[0]
    spine = {its: doc for doc, (its, other) in every.items() if not other}
    place = nodes.paragraph("", f"Chapter {int(chapter)} of {int(last)}", classes=["chapter-of"])
    if letter:
        own = link(app, docname, spine[chapter], f"chapter {int(chapter)}") if chapter in spine else nodes.Text(chapter)
        place = nodes.paragraph("", "Deep dive to ", own, classes=["chapter-of"])
    if opening := app.env.openings.get(docname):
        takes, more = opening["minutes"], opening["second"]
        place += nodes.Text(f", {takes} minutes" + (f", {takes + more} in full" if more else ""))
    next(doctree.findall(nodes.section)).insert(0, place)
    on = next((doc for its, doc in spine.items() if its > chapter), None)
    for box in doctree.findall(nodes.container):
        if "opening" in box["classes"] and on and not letter:
            box[0] += [nodes.Text(" Next comes "), link(app, docname, on), nodes.Text(".")]
    dives = [] if letter else [doc for doc in every if every[doc][0] == chapter and doc != docname]
    summary = next((s for s in doctree.findall(nodes.section) if title(s) == "Summary"), None)
    if dives and summary is not None:
        summary += nodes.container("", *(card(app, docname, dive) for dive in dives), classes=["deep-dives"])


def title(section):
    return next(section.findall(nodes.title)).astext()


def link(app, page, other, name=None):
    """A link to another page, by its title unless it has another name."""
    uri = app.builder.get_relative_uri(page, other)
    return nodes.reference("", name or app.env.titles[other].astext(), refuri=uri, internal=True)


def card(app, chapter, dive):
    """The title as a link, the minutes, and the line below the title, which says what the deep dive is about."""
    opening = app.env.openings[dive]
    name = nodes.paragraph("", "Deep dive: ", link(app, chapter, dive), nodes.Text(f", {opening['minutes']} minutes"))
    return nodes.container("", name, nodes.paragraph("", opening["line"]), classes=["deep-dive"])


def lead_on(app, pagename, templatename, context, doctree):
    """Previous and next page. They skip the deep dives, which the foot lists, and lead from one back to its chapter."""
    every = numbered_pages(app.env)
    spine = [doc for doc, (_, side_road) in every.items() if not side_road]
    if pagename in every:
        chapter, letter = every[pagename]
        passed = [doc for doc, (its, other) in every.items() if its == chapter and other > letter]
        takes = {doc: opening["minutes"] for doc, opening in app.env.openings.items()}
        context["passed_by"] = [neighbour(app, pagename, doc) | {"minutes": takes.get(doc)} for doc in passed]
        here = next(k for k, doc in enumerate(spine) if every[doc][0] == chapter)
        back, on = spine[: here + bool(letter)][-1:], spine[here + 1 :][:1]
        if not on:  # the last chapter: to the page after its deep dives
            on = [doc for doc in app.builder.relations.get(list(every)[-1], [])[2:] if doc]
    else:  # after the deep dives of the last chapter: back to the chapter
        before = app.builder.relations.get(pagename, [None, None])[1]
        back, on = [doc for doc in spine[-1:] if before in every], []
    _, *in_contents = app.builder.relations.get(pagename, [None] * 3)
    for side, docs, other in zip(("prev", "next"), (back, on), in_contents, strict=True):
        for doc in docs or filter(None, [other]):
            context[side] = neighbour(app, pagename, doc)


def neighbour(app, pagename, doc):
    """A link to a page, by the name that the contents have for it: a chapter's has its number."""
    name = f"{''.join(chapter_number(doc) or '')} {app.env.titles[doc].astext()}".strip()
    return {"link": app.builder.get_relative_uri(pagename, doc), "title": name}


def setup(app):
    app.connect("doctree-resolved", add)
    app.connect("html-page-context", lead_on)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
