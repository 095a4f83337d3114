"""The exercises on RMSNorm."""
