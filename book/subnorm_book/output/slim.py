"""Makes the built pages light, complete and self-contained; the theme's own output is none of the three.

What Sphinx lets us choose is in `_config.yml`, in `book/_templates` and in `leave_out`. The rest runs over the HTML
when the build has finished, and changes nothing when run again. Every rule in `RULES` says which fault it cures, and
one that no page needs any more is a warning.
"""

import json
import re
import struct
from html import unescape
from pathlib import Path
from urllib.parse import unquote

from docutils import nodes
from sphinx.util import logging
from sphinx.util.index_entries import split_index_msg
from subnorm_book import AFTER_THE_THEME
from subnorm_book.output import styles
from subnorm_book.output.prerender import GLUE

log = logging.getLogger(__name__)

THEME = "sphinx_book_theme"

#: Scripts and sheets, by a word of theirs, that a page needs only if it has the second word: live cells need another
#: server, whose address is declared twice, an error on every page; no page has tabs; the browser folds (solutions.py).
LEFT_OUT = {
    "sphinx-thebe.js": None,
    "sphinx-thebe.css": None,
    "THEBE_JS_URL": None,
    "design-tabs.js": "sd-tab-",
    "toggleHint": None,
    "toggleOpenOnPrint": None,
    "togglebutton": None,
    "clipboard.min.js": 'class="highlight',  # both copy code
    "copybutton.js": 'class="highlight',
}

CLAIM = r'<sup class="claim"(?:(?!</sup>).)*</sup>'
OPTIONS = r'<script src="([^"?]*/documentation_options\.js)[^"]*"></script>'  # the next inline script needs it
RULES = [
    (r'<script type="text/x-thebe-config">.*?</script>\s*<script>kernelName = .*?</script>', ""),  # of live cells, too
    (r'<meta name="viewport" content="width=device-width, initial-scale=1" ?/>', ""),  # the page has one already
    # its spoken name must contain the words it shows
    (r'(<button class="btn search-button-field[^>]*?) title="Search" aria-label="Search"', r"\1"),
    (r'<div id="pst-primary-sidebar" class', '<div id="pst-primary-sidebar" role="region" aria-label="Sidebar" class'),
    (r'<summary aria-label="Toggle hidden content">', "<summary>"),
    # the arrow that unfolds a chapter's deep dives has no name of its own
    (r'(<a class="[^"]*reference internal"[^>]*>([^<]*)</a><details[^>]*><summary)>', r'\1 aria-label="More on \2">'),
    # an empty corner of a table is no heading
    (r'<th class="head"><p></p></th>', "<td></td>"),
    # roles that do not fit their children
    (r' role="list"(?= class="citation-list")| role="doc-biblioentry"', ""),
    (r"<script (?![^>]*\b(?:defer|async)\b)(?=[^>]*\bsrc=)", "<script defer "),
    # of what Bootstrap's script can do, a page needs what subnorm.js does in a twentieth of its bytes
    (r"<script [^>]*/scripts/bootstrap\.js[^>]*></script>", ""),
    (r' data-bs-[a-z-]+="[^"]*"', ""),
    # a browser may begin a line with the full stop after a formula, or with the mark of a claim
    (rf"</span>{GLUE}([.,;:?!)’”]*(?:{CLAIM})?)", r"\1</span>"),
    # a narrow screen may break a last word, in code or bold too, to begin a line with the mark of a claim
    (rf'(?<=[\s>])(?<!"glued">)([^\s<>]{{1,16}}{CLAIM})', r'<span class="glued">\1</span>'),
    (rf'(?<!"glued">)(<code [^>]*>(?:(?!</code>).){{1,99}}</code>{CLAIM})', r'<span class="glued">\1</span>'),
    (rf"(?<=\s)([^\s<>]{{1,16}})</strong>({CLAIM})", r'</strong><span class="glued"><strong>\1</strong>\2</span>'),
    # the TeX of a formula beside its MathML, and a class of the hundreds of links of the ledger, which no rule needs
    (r'<annotation encoding="application/x-tex">[^<]*</annotation>', ""),
    (r'<a class="reference internal"(?= href="[^"]*#(?:row|claim|cell)-)', "<a"),
    # names, punctuation and blanks of a listing have the colour of the listing, and are most of a chapter's elements
    (r'<span class="(?:n|nn|p|w)">([^<]*)</span>', r"\1"),
]

#: On a narrow screen a long line of a listing goes on below, under its own beginning (subnorm.css). One of these
#: characters or fewer has room on every phone.
SHORT = 30
#: It may end before the point of a call, or behind a bracket; else a phone would end it within a name.
ENDS = re.compile(r'(?=<span class="o">\.</span>)|(?<=[(\[])(?=[^)\]\s])')
LISTING = re.compile(r'(<div class="(?:story )?highlight-[^"]*"><div class="highlight"><pre>)(.*?)(?=</pre>)', re.S)

# The theme asks for the width of every listing and table as the page opens, which lays out a long page at once, with
# the sections that nobody has come to yet. subnorm.js does the same for each section when it is laid out.
THEME_SCRIPT = "scripts/pydata-sphinx-theme.js"
ASKED = (
    '["pre",".nboutput > .output_area",".cell_output > .output",".jp-RenderedHTMLCommon",'
    '".pst-scrollable-table-container"]'
)
NOT_ASKED = '["not-asked"]'

# Of a search for "eps", Sphinx would mark a part of "steps", and of one for "d" the first letter of "does". What is no
# letter could have a meaning in the pattern.
ANYWHERE = "val.toLowerCase().indexOf(text)"
AT_A_START = (
    r'val.toLowerCase().search(RegExp("(?<![\\p{L}\\p{N}_])" + text.replace(/[^\p{L}\p{N}_-]/gu, ".")'
    r' + (text.length > 1 ? "" : "(?![\\p{L}\\p{N}_])"), "u"))'
)

COMMENT = re.compile(r"^[ \t]*(?://.*|/\*(?:[^*]|\*(?!/))*\*/[ \t]*)\n", re.MULTILINE)
BEHIND = re.compile(r"[ \t]+//[ \t][^\"'`]*$")  # a comment behind code: in a string, a quotation mark would follow

# A fifth of the bytes of the site, which no page loads. Fonts in another form are for browsers of before 2018.
UNUSED = ["**/*.map", "**/*.ttf", "scripts/fontawesome.js*", "scripts/bootstrap.js*"]

HOME = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Subnorm</title>
<meta name="viewport" content="width=device-width, initial-scale=1.0">
<meta name="description" content="Leads to the first page of the book."><link rel="icon" href="_static/favicon.svg">
<meta http-equiv="refresh" content="0; url={url}"></head><body><a href="{url}">Open the book</a></body></html>
"""


def slim(html, page, matched=None):
    """The HTML of the file `page`, fixed; the set `matched` gets the patterns of the rules that it needed."""
    for pattern, replacement in [(OPTIONS, lambda m: options(page.parent / m[1])), *RULES]:
        html, count = re.subn(pattern, replacement, html, flags=re.DOTALL)
        if count and matched is not None:
            matched.add(pattern)
    html = LISTING.sub(lambda m: m[1] + "\n".join(map(marked, m[2].split("\n"))), html)
    first = re.search(r"<article\b.*?<img\b", html, re.DOTALL)  # the logo, and what the reader may see at once
    return re.sub(
        r"<img (?![^>]*\bdecoding=)([^>]*)>", lambda m: sized(m, page, bool(first) and m.start() > first.end()), html
    )


def marked(line):
    """A line of a listing; a long one with its indentation, for the style sheet, and the places where it may end."""
    text = unescape(re.sub(r'<span class="linenos".*?</span>|<[^>]*>', "", line))
    if len(text) <= SHORT or '<span class="line"' in line:
        return line
    indent = len(text) - len(text.lstrip())
    style = f' style="--in:{indent}"' if indent else ""
    return f'<span class="line"{style}>{ENDS.sub("<wbr>", line)}</span>'


def options(path):
    """The script at `path`, inline."""
    return f"<script>{path.read_text('utf-8')}</script>"


def sized(image, page, later):
    """The size of a picture, so that the text below does not jump when it arrives; a later one waits for the page."""
    more = 'decoding="async" loading="lazy"' if later else 'decoding="async"'
    if "width=" in image[1]:
        return f"<img {more} {image[1]}>"
    source = re.search(r'\bsrc="([^"?#]*)', image[1])[1]
    box = image_size(page.parent / unquote(source))
    if box is None:  # and no `decoding`: the next build warns again
        log.warning("%s: the size of picture %.80s is not known; use a PNG, or an SVG with a viewBox", page, source)
        return image[0]
    return f'<img width="{box[0]}" height="{box[1]}" {more} {image[1]}>'


def image_size(path):
    """(width, height) of a PNG or an SVG on the page; None of anything else."""
    try:
        picture = path.read_bytes()
    except OSError:  # a picture in the page itself, or elsewhere
        return None
    if picture.startswith(b"\x89PNG"):
        pixels = struct.unpack(">II", picture[16:24])
        density = picture.find(b"pHYs", 0, picture.find(b"IDAT"))  # pixels in a metre; CSS has 96 dots in an inch
        metre = struct.unpack(">I", picture[density + 4 : density + 8])[0] if density > 0 else 0
        return tuple(round(length / max(1, round(metre * 0.0254 / 96))) for length in pixels)
    box = re.match(rb'<svg\b[^>]* width="([\d.]+)" height="([\d.]+)"', picture)  # of a plot
    box = box or re.search(rb'viewBox="\S+ \S+ ([\d.]+) ([\d.]+)"', picture)
    return box and tuple(round(float(length)) for length in box.groups())


def add_description(app, pagename, templatename, context, doctree):
    """A description for search engines: the page's own (front matter), or its first paragraph without a formula."""
    tags = context.get("metatags", "")
    if 'name="description"' in tags:
        return
    text = f"{context.get('title', pagename)}: a page of the course Subnorm."
    if doctree:
        plain = [p.astext() for p in doctree.findall(nodes.paragraph) if not any(p.findall(nodes.math))]
        text = next((p for p in plain if len(p) >= 60), text)
    text = " ".join(text.split())
    if len(text) > 160:
        text = text[:160].rsplit(" ", 1)[0].rstrip(",.;:") + " …"
    text = text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    context["metatags"] = f'{tags}\n<meta name="description" content="{text}" />'


def complete_search(app):
    """The search finds index entries of pages that are not written now, too; Sphinx forgets them between builds."""
    if app.builder.indexer:  # a builder of HTML may have no search
        found = app.builder.indexer._index_entries
        for doc, entries in app.env.domains["index"].entries.items():
            said = {(w, target, main) for kind, text, target, main, _ in entries for w in split_index_msg(kind, text)}
            found.setdefault(doc, sorted(said))
        app.builder.indexer._index_entries = dict(sorted(found.items()))  # in the order of a build of all pages
    return []


def leave_out(app, pagename, templatename, context, doctree):
    """Drop scripts and sheets that the page does not need."""
    if app.config.html_theme != THEME:
        return
    for word, needed_by in LEFT_OUT.items():
        if needed_by and needed_by in context.get("body", ""):
            continue
        found = [
            (kind, file)
            for kind in ("script_files", "css_files")
            for file in context[kind]
            if word in name_or_text(file)
        ]
        if not found:
            log.warning("%r is on no page; drop it from LEFT_OUT in slim.py", word)
        for kind, file in found:
            context[kind] = [other for other in context[kind] if other is not file]


def name_or_text(file):
    """The name of a script or a sheet, or the script itself."""
    return str(file.filename or file.attributes["body"])


def change(path, before, after):
    """Put our code in the place of another's."""
    if not path.exists():  # another theme
        return
    script = path.read_text("utf-8")
    if before in script:
        path.write_text(script.replace(before, after), "utf-8")
    elif after not in script:
        log.warning("%s: %s has changed; look it up there, and fix it in slim.py", path, " ".join(before.split())[:60])


def remove_unused(static):
    """{"_static": the patterns that found files}, or nothing where an earlier build has removed them."""
    found = {pattern: list(static.glob(pattern)) for pattern in UNUSED}
    for path in {path for paths in found.values() for path in paths}:  # two patterns name the same file
        path.unlink()
    matched = {pattern for pattern, paths in found.items() if paths}
    return {"_static": matched} if matched else {}


def leave_out_comments(static):
    """Take comments and indentation out of our scripts and Sphinx's, which are a fortieth of what a chapter loads.

    A minifier would save a little more. The one that was tried, rjsmin 1.2.5, took a space out of a nested template.
    """
    for path in static.glob("*.js"):
        script = path.read_text("utf-8")
        short = code_of_lines(COMMENT.sub("", script))
        if short != script:
            path.write_text(short, "utf-8")


def code_of_lines(script):
    """The script without the spaces before a line and the comment behind it, but where a text in backticks goes on."""
    lines, in_text = [], False
    for line in script.split("\n"):
        goes_on = line.count("`") % 2
        code = line if in_text else line.lstrip(" \t")
        lines.append(code if in_text or goes_on else BEHIND.sub("", code))
        in_text ^= goes_on
    return "\n".join(lines)


def warn_of_idle(record, needed, places):
    """A warning for each rule that is needed nowhere; of pages that are not written now, the record knows."""
    known = json.loads(record.read_text("utf-8")) if record.exists() else {}
    needed = {place: sorted(rules) for place, rules in (known | needed).items() if place in places}
    record.write_text(json.dumps(needed), "utf-8")
    for rule in (OPTIONS, *(pattern for pattern, _ in RULES), *UNUSED):
        if not any(rule in rules for rules in needed.values()):
            log.warning("no page needs the rule %s any more; drop it from slim.py", rule, type="slim")


def finish(app, error):
    if error or app.builder.format != "html":
        return
    site, static = Path(app.outdir), Path(app.outdir, "_static")
    change(static / THEME_SCRIPT, ASKED, NOT_ASKED)
    change(static / "sphinx_highlight.js", ANYWHERE, AT_A_START)
    if app.config.root_doc != "index":  # instead of the bare redirect that is written there
        (site / "index.html").write_text(HOME.format(url=f"{app.config.root_doc}.html"), "utf-8")
    needed = remove_unused(static)
    leave_out_comments(static)
    old = {path: path.read_text("utf-8") for path in sorted(site.rglob("*.html")) if static not in path.parents}
    fixed = {}
    for path, html in old.items():
        matched = set()
        fixed[path] = slim(html, path, matched)
        if fixed[path] != html:
            needed[path.relative_to(site).as_posix()] = matched
    if app.config.html_theme == THEME:
        places = {"_static", *(path.relative_to(site).as_posix() for path in old)}
        warn_of_idle(Path(app.doctreedir, "rules.json"), needed, places)
    new = styles.merge(fixed, static)
    for path in old:
        if new[path] != old[path]:
            path.write_text(new[path], "utf-8")


def setup(app):
    app.connect("html-page-context", add_description)
    app.connect("html-page-context", leave_out, priority=AFTER_THE_THEME)
    app.connect("html-collect-pages", complete_search)
    app.connect("build-finished", finish, priority=AFTER_THE_THEME)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
