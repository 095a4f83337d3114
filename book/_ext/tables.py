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

    app.connect("env-before-read-docs", start)
    app.connect("env-purge-doc", purge)
