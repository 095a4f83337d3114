"""The exercises on residual connections."""
