"""The exercises on the place of the norm: Pre-LN, Post-LN and their relatives, a stack, and the warm-up."""
