"""Change its norms

The model was trained with RMSNorm and its gains. Which change shows in the story? Write a norm of your own, too.
"""

from textwrap import fill

from subnorm.numpy import layer_norm, rms_norm
from subnorm_lab import stories


def no_gain(x, gamma):
    return rms_norm(x)


def no_norm(x, gamma):
    return x


model = stories.load()
for norm in (rms_norm, layer_norm, no_gain, no_norm):
    told = stories.generate(stories.altered(model, norm=norm), tokens=40)
    print(fill(f"{norm.__name__}: {told}", 40) + "\n")
