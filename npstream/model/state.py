"""The arrays of a model: shapes, canonical order, bytes.

    level     float64[6]     threshold, mean and deviation of negative scores, bucket, recent FPR and TPR
    tally     int64[8]       tracked, negatives, positives, false alarms, detections, outstanding, held, withheld
    clock     int64[6]       learned negatives and targets, window position and hits, draws, stream number
    head      float64[4]     gamma, share of targets, bias, bias accumulator
    window    uint8[window]  1 where a recent negative scored above zero                     not external
    alpha     float64[d, D]  directions, unit by unit along the last axis                    not external
    wc, ws    float64[D]     cosine and sine weights                                         not external
    acc_c, acc_s, acc_a      float64[D]  Adagrad accumulators of wc, ws and the directions   plus
    mean, var, inv_sd        float64[d]  running moments                                     zscore or one_class
    low, high                float64[d]  running feature range                               one_class

The bytes are these arrays in this order, little-endian, without padding.
"""

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from npstream.errors import StateCorrupt
from npstream.model.kernel import CLOCKS, ModelState, Scaler
from npstream.model.network import HEADS, Network, Scratch
from npstream.model.params import Params
from npstream.model.threshold import LEVELS, TALLIES

Array = npt.NDArray[Any]


def empty_state(params: Params) -> ModelState:
    """All arrays of a model with these parameters, zero."""
    networked = params.preset != "external"
    d, units = (params.d, params.D) if networked else (0, 0)
    adagrad = units if params.preset == "plus" else 0
    moments = d if params.input == "zscore" or params.one_class else 0
    reach = d if params.one_class else 0
    f8 = np.float64
    return ModelState(
        level=np.zeros(LEVELS, f8),
        tally=np.zeros(TALLIES, np.int64),
        clock=np.zeros(CLOCKS, np.int64),
        window=np.zeros(params.window if networked else 0, np.uint8),
        net=Network(
            alpha=np.zeros((d, units), f8),
            wc=np.zeros(units, f8),
            ws=np.zeros(units, f8),
            acc_c=np.zeros(adagrad, f8),
            acc_s=np.zeros(adagrad, f8),
            acc_a=np.zeros(adagrad, f8),
            head=np.zeros(HEADS, f8),
        ),
        scaler=Scaler(*(np.zeros(size, f8) for size in (moments, moments, moments, reach, reach))),
    )


def scratch_for(params: Params) -> Scratch:
    """Working memory for one event of such a model."""
    units = params.D if params.preset != "external" else 0
    return Scratch(*(np.zeros(size, np.float64) for size in (params.d, params.d, params.d, units, units, units)))


def named_arrays(state: ModelState) -> dict[str, Array]:
    """The arrays in canonical order, by name, without the empty ones. Views, not copies."""
    return {name: array for name, array in _all_arrays(state) if array.size}


def _all_arrays(state: ModelState) -> Iterator[tuple[str, Array]]:
    net, scaler = state.net, state.scaler
    yield from (("level", state.level), ("tally", state.tally), ("clock", state.clock), ("head", net.head))
    yield from (("window", state.window), ("alpha", net.alpha), ("wc", net.wc), ("ws", net.ws))
    yield from (("acc_c", net.acc_c), ("acc_s", net.acc_s), ("acc_a", net.acc_a))
    yield from (("mean", scaler.mean), ("var", scaler.var), ("inv_sd", scaler.inv_sd))
    yield from (("low", scaler.low), ("high", scaler.high))


def state_bytes(state: ModelState) -> bytes:
    """The canonical bytes; equal states have equal bytes on every machine."""
    return b"".join(_little(array).tobytes() for array in named_arrays(state).values())


def state_digest(state: ModelState) -> str:
    """32 hex digits of the canonical bytes."""
    return hashlib.blake2b(state_bytes(state), digest_size=16).hexdigest()


def state_from_bytes(params: Params, data: bytes) -> ModelState:
    """The inverse of `state_bytes`. Raises `StateCorrupt` when the bytes cannot be such a state."""
    state = empty_state(params)
    arrays = named_arrays(state)
    expected = sum(array.nbytes for array in arrays.values())
    if len(data) != expected:
        raise StateCorrupt(
            f"model state has {len(data)} bytes, these parameters need {expected}:"
            " it belongs to other parameters; restore it with the ones it was saved with"
        )
    at = 0
    for name, array in arrays.items():
        part = np.frombuffer(data, _little(array).dtype, array.size, at).reshape(array.shape)
        if not np.isfinite(part).all():
            raise StateCorrupt(f"model state holds a number that is not finite in {name!r}; use an older snapshot")
        array[...] = part
        at += array.nbytes
    if state.window.size and state.window.max() > 1:
        raise StateCorrupt("model state holds a window entry other than 0 and 1; use an older snapshot")
    return state


def _little(array: Array) -> Array:
    return array.astype(array.dtype.newbyteorder("<"), copy=False)
