"""Your own

NumPy, the package and the model are here. What do you want to know?
"""

import numpy as np

from subnorm.numpy import layer_norm

print(layer_norm(np.arange(4.0)).round(2))
