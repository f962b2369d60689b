"""Which features moved a score: what each selects in the tables, and the slope of the network along it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from npstream.arrays import Floats
from npstream.model.columns import FERN_BITS, FERNS, columns_of
from npstream.model.model import Model
from npstream.model.scaler import standardise, to_unit_norm
from npstream.model.tables import VALUE


@dataclass(frozen=True, slots=True)
class Contributions:
    """One observation as the model sees it; all are float64[d].

    z            the features after standardisation (or whatever `input` says); 0 where one is missing or a category
    gradient     slope of the network's score along each z
    contribution gradient times z (to first order, what the feature adds against an average event), plus the cells
                 that the feature selects, which add up exactly to the tables' part of the score; a cell that five
                 comparisons select together counts a fifth for each
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
    columns = columns_of(model.params)
    z, gradient = np.zeros(model.params.d), np.zeros(model.params.d)
    if columns.number.size:
        z[columns.number] = _as_seen(model, arrays, x[columns.number].astype(np.float64))
        gradient[columns.number] = _gradient(model, arrays, z[columns.number])
    return Contributions(z, gradient, gradient * z + _from_tables(model, arrays, x))


def _gradient(model: Model, arrays: dict[str, Floats], z: Floats) -> Floats:
    alpha = arrays["alpha"]
    angle = alpha.T @ z
    scale = 1.0 / np.sqrt(model.params.D) if model.params.preset == "paper" else 1.0
    return np.asarray(scale * (alpha @ (arrays["ws"] * np.cos(angle) - arrays["wc"] * np.sin(angle))))


def _from_tables(model: Model, arrays: dict[str, Floats], x: npt.NDArray[np.float32]) -> Floats:
    """float64[d], which add up to the tables' part of the score."""
    found = np.zeros(model.params.d)
    cells = model.selected_cells(x)
    if cells.size == 0:
        return found
    columns = columns_of(model.params)
    order = np.concatenate([columns.number, columns.category])
    values = arrays["cell"][cells, VALUE]
    found[order] = values[: order.size]
    compared = order[arrays["fern_column"].astype(np.int64)]
    np.add.at(found, compared, np.broadcast_to(values[order.size :] / FERN_BITS, (FERN_BITS, FERNS)))
    return found


def _as_seen(model: Model, arrays: dict[str, Floats], x: Floats) -> Floats:
    z = x.copy()
    if model.params.input == "zscore":
        standardise(x, arrays["mean"], arrays["inv_sd"], arrays["clip"], z)
    elif model.params.input == "unit":
        to_unit_norm(x, z)
    return z
