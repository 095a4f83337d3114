"""Data that an extension stores for every page, from one build to the next."""


def by_page(app, *names):
    """Keep dicts `env.NAME` with an entry for each page; reading a page again first removes its entry."""

    def start(app, env, docnames):
        for name in names:
            if not hasattr(env, name):
                setattr(env, name, {})

    def purge(app, env, docname):
        for name in names:
            getattr(env, name, {}).pop(docname, None)

    def merge(app, env, docnames, other):
        """Add the entries from another process."""
        for name in names:
            table, read = getattr(env, name), getattr(other, name)
            table.update({docname: read[docname] for docname in docnames if docname in read})

    def order(app, env):
        """Sort the entries, so that their order does not depend on processes or on the pages read again."""
        for name in names:
            setattr(env, name, dict(sorted(getattr(env, name).items())))

    app.connect("env-before-read-docs", start)
    app.connect("env-purge-doc", purge)
    app.connect("env-merge-info", merge)
    app.connect("env-updated", order)
