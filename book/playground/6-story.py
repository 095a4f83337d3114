"""A model tells a story

This trained language model runs on the package's RMSNorm, attention and Pre-LN. Give it another beginning.
"""

from textwrap import fill

from subnorm_lab import stories

model = stories.load()
print(fill(stories.generate(model, "One day, a dog", tokens=60), 40))
