"""Residual connections, LayerNorm, RMSNorm, Pre-LN and Post-LN, in NumPy and in PyTorch.

`subnorm.numpy` defines each operation as a pure function, forward and backward.
`subnorm.torch` has the norms and placements under the same names, and the rest as modules; autograd differentiates.
Importing `subnorm` or `subnorm.numpy` does not import torch.
"""

__version__ = "0.5.0"
