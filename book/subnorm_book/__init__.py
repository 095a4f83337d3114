"""The book's Sphinx extensions, in one package so that no other module can shadow them."""
