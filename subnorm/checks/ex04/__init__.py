"""The exercises on the placement of the norm: Pre-LN, Post-LN and their relatives, a stack, and warm-up."""
