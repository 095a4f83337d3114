"""A model tells a story

A trained language model on this package's RMSNorm, attention and Pre-LN. Give it another beginning.
"""

from subnorm_lab import stories

model = stories.load()
print(stories.generate(model, "One day, a dog", tokens=60))
