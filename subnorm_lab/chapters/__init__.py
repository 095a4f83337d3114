"""Figures and proofs of the chapters, one module for each notebook."""
