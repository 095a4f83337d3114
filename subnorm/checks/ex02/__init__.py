"""The exercises on LayerNorm."""
