"""The extension of the book, in parts: what proves a sentence, what teaches, what runs in a page, and the output.

Each part is an extension of its own. The order in which their handlers run is written here and nowhere else: Sphinx
runs the handlers of an event by priority, and those of equal priority in the order in which they were connected.
"""

PARTS = (
    "output.faster_build",
    "output.prerender",
    "notebook_text",  # before what it reads is looked at
    "evidence.values",
    "evidence.measured_on",
    "evidence.claims",
    "teaching.key_equations",
    "teaching.quick_checks",
    "output.alt_text",
    "output.narrow_figures",
    "teaching.live_figures",
    "teaching.solutions",
    "evidence.checked_cells",
    "teaching.second_reading",  # counts the minutes of what checked_cells has left open
    "teaching.opening",  # adds them up
    "output.repository_links",  # goes into the opening
    "teaching.symptoms",
    "teaching.chapter_links",
    "teaching.predict",
    "teaching.hover_cards",
    "output.search",
    "evidence.models_table",
    "teaching.row_filter",
    "teaching.retold",
    "teaching.byline",
    "in_page.story_page",
    "teaching.exercises",
    "evidence.beliefs",
    "in_page.packs",
    "in_page.workbenches",
    "in_page.playground",
    "in_page.try_it",
    "output.api_pages",
    "output.on_screen",
    "output.no_breaks",
    "output.slim",
)

#: Handlers that change what Sphinx's own handlers (of priority 500, connected before ours) collect from a page as it
#: is read: the formulas in titles, the pictures, the files to download.
BEFORE_SPHINX = 400

#: Handlers that change what all others have left. Sphinx loads the theme after us, and the theme adds scripts and
#: sheets to a page at 500 and 501.
AFTER_THE_THEME = 900

#: Post-transforms that insert links and citations, which Sphinx resolves at 10.
BEFORE_LINKS = 5

#: Scripts that follow subnorm.js; Sphinx puts those named in `_config.yml` at 800.
AFTER_SUBNORM_JS = 900


def setup(app):
    for part in PARTS:
        app.setup_extension(f"{__name__}.{part}")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
