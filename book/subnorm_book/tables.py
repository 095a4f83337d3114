"""What an extension remembers of every page, from one build to the next."""


def by_page(app, *names):
    """Keeps `env.NAME`, a dict with the name of a page as key; a page that is read again loses its entry before."""

    def start(app, env, docnames):
        for name in names:
            if not hasattr(env, name):
                setattr(env, name, {})

    def purge(app, env, docname):
        for name in names:
            getattr(env, name, {}).pop(docname, None)

    def merge(app, env, docnames, other):
        """Takes what another process has read."""
        for name in names:
            table, read = getattr(env, name), getattr(other, name)
            table.update({docname: read[docname] for docname in docnames if docname in read})

    def order(app, env):
        """As if all pages were read one after the other, whichever process was first and whatever was read again."""
        for name in names:
            setattr(env, name, dict(sorted(getattr(env, name).items())))

    app.connect("env-before-read-docs", start)
    app.connect("env-purge-doc", purge)
    app.connect("env-merge-info", merge)
    app.connect("env-updated", order, priority=100)  # before the tables are checked
