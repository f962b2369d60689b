"""Arrays by what they hold."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Features = NDArray[np.float32]
Signs = NDArray[np.int8]
"""Labels or decisions: 1 or -1."""
