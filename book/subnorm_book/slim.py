"""Makes the built pages light, complete and self-contained; the theme's own output is none of the three.

Runs over the HTML when the build has finished, and changes nothing when run again. Every rule in `RULES` says which
fault of the theme it cures.
"""

import io
import re
import struct
from pathlib import Path
from urllib.parse import unquote

from docutils import nodes
from PIL import Image
from sphinx.util import logging
from sphinx.util.index_entries import split_index_msg

from subnorm import figures
from subnorm_book import styles

log = logging.getLogger(__name__)

THEME = """<script>
  {
    const root = document.documentElement.dataset;
    let mode = "auto";
    try { mode = localStorage.getItem("mode") || mode; } catch { /* a browser may refuse to store */ }
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.classList.add("js"); // controls that only a script can serve are shown from the start
    // neither reloaded nor sent to a place within the page: the reader begins at the top
    if (!location.hash && performance.getEntriesByType("navigation")[0]?.type === "navigate")
      document.documentElement.classList.add("fresh");
    root.mode = mode;
    root.theme = mode !== "auto" ? mode : dark ? "dark" : "light";
  }
  </script>"""

# The style sheet holds the fonts of formulas, but Chromium lays out one frame before it has decoded them, and then
# breaks the lines anew. That frame is not shown.
TYPESET = """<script>
  {
    const shown = document.documentElement.classList;
    shown.add("typesetting");
    document.addEventListener("load", ({ target }) => {
      if (target.rel !== "stylesheet") return;
      const fonts = [...document.fonts].filter(({ family }) => family.startsWith("KaTeX"));
      Promise.allSettled(fonts.map((font) => font.load())).then(() => shown.remove("typesetting"));
    }, true);
  }
  </script>"""

RULES = [
    # 1.5 MB of script that draws again the icons which the style sheet has already drawn
    (r'<script src="[^"]*/fontawesome\.js[^"]*"></script>', ""),
    # live cells need another server; their script is declared twice, which is an error on every page
    (r"<script>const THEBE_JS_URL.*?</script>", ""),
    (r'<script type="text/x-thebe-config">.*?</script>', ""),
    (r"<script>kernelName = .*?</script>", ""),
    (r"<script[^>]*sphinx-thebe\.js[^>]*></script>|<link[^>]*sphinx-thebe\.css[^>]*/>", ""),
    # fetched early, run late: preloading them only delays what the reader sees first
    (r'<link rel="preload" as="script"[^>]*/>', ""),
    (r'<meta name="viewport" content="width=device-width, initial-scale=1" ?/>', ""),  # the page has one already
    (r'<div id="ethical-ad-placement".*?</div>', ""),
    # without a stored choice the theme starts light and then flashes to dark
    (r'<script data-cfasync="false">.*?</script>', THEME),
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
    # names, punctuation and blanks of a listing have the colour of the listing, and are most of a chapter's elements
    (r'<span class="(?:n|nn|p|w)">([^<]*)</span>', r"\1"),
    (r"(<pre[^>]*>)<span></span>", r"\1"),
    # the list of contents is to follow the reader, and is sought by a name it does not have; subnorm.js starts this
    (r' data-bs-spy="scroll" data-bs-target="[^"]*"', ' data-bs-target="#pst-page-toc-nav"'),
    # the first page has a layout of its own: its head must not jump when the part that says so arrives
    (r'<body (?!class="landing")(?=.*<div class="promise )', '<body class="landing" '),
]

# The theme asks for the width of every listing and table as the page opens, which lays out a long page at once, with
# the sections that nobody has come to yet. subnorm.js does the same for each section when it is laid out.
THEME_SCRIPT = "scripts/pydata-sphinx-theme.js"
ASKED = (
    '["pre",".nboutput > .output_area",".cell_output > .output",".jp-RenderedHTMLCommon",'
    '".pst-scrollable-table-container"]'
)
NOT_ASKED = '["not-asked"]'

# More than half of the bytes of the site. Fonts in another form are for browsers of before 2018.
UNUSED = ["**/*.map", "**/*.ttf", "scripts/fontawesome.js*", "sphinx-thebe.*"]

HOME = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Subnorm</title>
<meta name="viewport" content="width=device-width, initial-scale=1.0">
<meta name="description" content="Leads to the first page of the book."><link rel="icon" href="_static/favicon.svg">
<meta http-equiv="refresh" content="0; url={url}"></head><body><a href="{url}">Open the book</a></body></html>
"""


def slim(html, page):
    """The HTML of the file `page`, fixed."""
    html = re.sub(
        r'<script src="([^"?]*/documentation_options\.js)[^"]*"></script>', lambda m: options(page.parent / m[1]), html
    )
    if "sd-tab" not in html.replace("sd-tabs-storage", ""):
        html = re.sub(r"<script[^>]*/design-tabs\.js[^>]*></script>", "", html)
    for pattern, replacement in RULES:
        html = re.sub(pattern, replacement, html, flags=re.DOTALL)
    if 'class="katex"' in html and TYPESET not in html:
        html = html.replace(THEME, THEME + TYPESET)
    first = re.search(r"<article\b.*?<img\b", html, re.DOTALL)  # the logo, and what the reader may see at once
    return re.sub(
        r"<img (?![^>]*\bdecoding=)([^>]*)>", lambda m: sized(m, page, bool(first) and m.start() > first.end()), html
    )


def options(path):
    """Inline, because the next inline script needs it. From a file, search cannot fetch pages to quote from them."""
    return (
        f"<script>{path.read_text('utf-8')}\n"
        'if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;</script>'
    )


def sized(image, page, later):
    """The size of a picture, so that the text below does not jump when it arrives, perhaps only when it is near."""
    more = 'decoding="async" loading="lazy"' if later else 'decoding="async"'
    if "width=" in image[1]:
        return f"<img {more} {image[1]}>"
    source = re.search(r'\bsrc="([^"?#]*)', image[1])[1]
    box = size(page.parent / unquote(source))
    if box is None:  # and no `decoding`: the next build warns again
        log.warning("%s: the size of picture %.80s is not known; use a PNG, or an SVG with a viewBox", page, source)
        return image[0]
    more += choice(page.parent / unquote(source), source, box)
    return f'<img width="{box[0]}" height="{box[1]}" {more} {image[1]}>'


def choice(path, source, box):
    """A picture of several pixels a dot is for screens that have them: the others load one of a pixel a dot."""
    width = box[0]
    if path.suffix != ".png" or (sharp := struct.unpack(">I", path.read_bytes()[16:20])[0]) == width:
        return ""
    small = path.with_suffix(".small.png")
    if not small.exists():
        png = io.BytesIO()
        with Image.open(path) as picture:
            picture.convert("RGB").resize(box, Image.Resampling.BOX).save(png, format="png")
        small.write_bytes(figures.with_palette(png))
    name = f"{source.removesuffix('.png')}.small.png"
    shown = f"(max-width: {width + 32}px) calc(100vw - 2rem), {width}px"
    return f' srcset="{name} {width}w, {source} {sharp}w" sizes="{shown}"'


def size(path):
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
    box = re.search(rb'viewBox="\S+ \S+ ([\d.]+) ([\d.]+)"', picture)
    return box and tuple(round(float(length)) for length in box.groups())


def describe(app, pagename, templatename, context, doctree):
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


def ask_no_widths(path):
    if not path.exists():  # another theme
        return
    script = path.read_text("utf-8")
    if ASKED in script:
        path.write_text(script.replace(ASKED, NOT_ASKED), "utf-8")
    elif NOT_ASKED not in script:
        log.warning("%s: what asks for widths has changed; look it up in the theme and fix ASKED in slim.py", path)


def finish(app, error):
    if error or app.builder.format != "html":
        return
    ask_no_widths(Path(app.outdir, "_static", THEME_SCRIPT))
    if app.config.root_doc != "index":  # instead of the bare redirect that is written there
        Path(app.outdir, "index.html").write_text(HOME.format(url=f"{app.config.root_doc}.html"), "utf-8")
    for path in [path for pattern in UNUSED for path in Path(app.outdir, "_static").glob(pattern)]:
        path.unlink(missing_ok=True)  # two patterns name it
    found = Path(app.outdir).rglob("*.html")
    paths = [path for path in sorted(found) if "_static" not in path.relative_to(app.outdir).parts]
    old = {path: path.read_text("utf-8") for path in paths}
    new = styles.merge({path: slim(html, path) for path, html in old.items()}, Path(app.outdir, "_static"))
    for path in paths:
        if new[path] != old[path]:
            path.write_text(new[path], "utf-8")


def setup(app):
    app.connect("html-page-context", describe)
    app.connect("html-collect-pages", complete_search)
    app.connect("build-finished", finish, priority=900)  # after the page that leads from index.html to the book
    return {"parallel_read_safe": True, "parallel_write_safe": True}
