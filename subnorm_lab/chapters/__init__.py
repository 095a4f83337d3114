"""Figures and proofs of the chapters, one module for each notebook."""

from subnorm_lab import figures


def begin() -> None:
    """What a notebook with PyTorch needs: one thread, so that no result changes, and the style of the figures."""
    import torch  # not above: a notebook without PyTorch loads this module, too

    torch.set_num_threads(1)
    figures.use_style()
