"""Which features moved a score: the slope of the score along each, times how far each was moved."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from npstream.arrays import Floats
from npstream.model.model import Model
from npstream.model.scaler import standardise, to_unit_norm


@dataclass(frozen=True, slots=True)
class Contributions:
    """One observation as the network sees it; all are float64[d].

    z            the features after standardisation (or whatever `input` says)
    gradient     slope of the score along each z
    contribution gradient times z: to first order, what the feature adds against an average event
    """

    z: Floats
    gradient: Floats
    contribution: Floats


def contributions(model: Model, x: npt.NDArray[np.float32]) -> Contributions:
    """What each feature of `x` (float32[d]) does to its score; empty for preset external, which has none.

    df/dz = scale * sum_j alpha_j (ws_j cos(alpha_j'z) - wc_j sin(alpha_j'z)), the derivative of eq. 9.
    """
    if model.params.preset == "external":
        none = np.empty(0)
        return Contributions(none, none, none)
    arrays = {name: np.asarray(array, np.float64) for name, array in model.arrays().items()}
    z = _as_seen(model, arrays, np.asarray(x, np.float64))
    alpha = arrays["alpha"]
    angle = alpha.T @ z
    scale = 1.0 / np.sqrt(model.params.D) if model.params.preset == "paper" else 1.0
    gradient = scale * (alpha @ (arrays["ws"] * np.cos(angle) - arrays["wc"] * np.sin(angle)))
    return Contributions(z, gradient, gradient * z)


def _as_seen(model: Model, arrays: dict[str, Floats], x: Floats) -> Floats:
    z = x.copy()
    if model.params.input == "zscore":
        standardise(x, arrays["mean"], arrays["inv_sd"], z)
    elif model.params.input == "unit":
        to_unit_norm(x, z)
    return z
