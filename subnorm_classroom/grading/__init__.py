"""Grading: what was handed in, the sandbox it runs in, and the verdict on each answer."""
