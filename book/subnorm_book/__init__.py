"""The Sphinx extensions of the book: one package, so that no module of the same name elsewhere takes their place."""
