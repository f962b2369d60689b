"""The arrays of a model: shapes, canonical order, bytes.

    level     float64[6]     threshold, mean and deviation of the scores behind it, bucket, recent FPR and TPR
    tally     int64[9]       tracked, negatives, positives, false alarms, detections, outstanding, held, withheld,
                             waiting
    tier_level float64[m, 6], tier_tally int64[m, 9]  the same of the m stricter tiers       with tiers
    tier_alarms int64[m + 1] alarms of each tier, the widest first                           with tiers
    clock     int64[7]       learned negatives and targets, window position and hits, draws, stream number, marker rows
    head      float64[6]     gamma, bias, its accumulator; bias of the slow weights, their share, its accumulator
    window    uint8[window]  1 where a recent score was above zero                           not external
    alpha     float64[n, D]  directions, unit by unit along the last axis                    not external
    wc, ws    float64[D]     cosine and sine weights                                         not external
    slow_c, slow_s float64[D] running means of wc, ws                                        plus
    acc_c, acc_s, acc_a      float64[D]  Adagrad accumulators of wc, ws and the directions   plus
    seen, mean, var, inv_sd, clip        float64[n]  running moments, bound of z-scores      zscore or one_class
    low, high                float64[n]  running feature range                               one_class
    cell      float32[cells, 2]  value (the selected ones are summed) and accumulator        plus
    marker    float64[15, n] quantile markers                                                plus
    ring      float32[64, n] recent rows, for the markers; NaN is a missing number           plus
    valued    float64[n]     values behind the markers                                       plus
    fern_column uint16[5, 64], fern_level, fern_limit float32[5, 64]  what the ferns compare plus

n is the number of columns that are numbers, all d without categories. The cells
are those of each number (17), each category, each fern (32). The bytes are these
arrays in this order, little-endian, without padding.
"""

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from npstream.errors import StateCorrupt
from npstream.model.columns import FERN_BITS, FERNS, MARKERS, cells_of, columns_of
from npstream.model.contributions import Parts
from npstream.model.kernel import CLOCKS, ModelState, Work
from npstream.model.network import HEADS, Network, Scratch
from npstream.model.params import Params
from npstream.model.scaler import CLIP, Scaler
from npstream.model.tables import RING, Tables, TableScratch
from npstream.model.threshold import LEVELS, TALLIES
from npstream.model.tiers import new_gates

Array = npt.NDArray[Any]


def empty_state(params: Params) -> ModelState:
    """All arrays of a model with these parameters, zero but for the bound of z-scores."""
    networked = params.preset != "external"
    n, units = (params.numbers, params.D) if networked else (0, 0)
    adagrad = units if params.preset == "plus" else 0
    moments = n if params.input == "zscore" or params.one_class else 0
    reach = n if params.one_class else 0
    f8 = np.float64
    return ModelState(
        level=np.zeros(LEVELS, f8),
        tally=np.zeros(TALLIES, np.int64),
        gates=new_gates(len(params.tiers)),
        clock=np.zeros(CLOCKS, np.int64),
        window=np.zeros(params.window if networked else 0, np.uint8),
        net=Network(
            alpha=np.zeros((n, units), f8),
            wc=np.zeros(units, f8),
            ws=np.zeros(units, f8),
            slow_c=np.zeros(adagrad, f8),
            slow_s=np.zeros(adagrad, f8),
            acc_c=np.zeros(adagrad, f8),
            acc_s=np.zeros(adagrad, f8),
            acc_a=np.zeros(adagrad, f8),
            head=np.zeros(HEADS, f8),
        ),
        scaler=Scaler(
            seen=np.zeros(moments, f8),
            mean=np.zeros(moments, f8),
            var=np.zeros(moments, f8),
            inv_sd=np.zeros(moments, f8),
            clip=np.full(moments, CLIP),
            low=np.zeros(reach, f8),
            high=np.zeros(reach, f8),
        ),
        tables=_empty_tables(params),
    )


def _empty_tables(params: Params) -> Tables:
    plus = params.preset == "plus"
    n, cells, ferns = (params.numbers if plus else 0), cells_of(params), (FERN_BITS if plus else 0, FERNS)
    return Tables(
        cell=np.zeros((cells, 2), np.float32),
        marker=np.zeros((MARKERS, n), np.float64),
        ring=np.zeros((RING, n), np.float32),
        valued=np.zeros(n, np.float64),
        column=np.zeros(ferns, np.uint16),
        level=np.zeros(ferns, np.float32),
        limit=np.zeros(ferns, np.float32),
    )


def scratch_for(params: Params) -> Work:
    """Working memory for one event of such a model."""
    n, units = params.numbers, params.D if params.preset != "external" else 0
    selected = params.d + FERNS
    return Work(
        net=Scratch(*(np.zeros(size, np.float64) for size in (3, n, n, n, units, units, units))),
        tables=TableScratch(
            code=np.zeros(columns_of(params).category.size, np.int64),
            x=np.zeros(params.d, np.float32),
            at=np.zeros(selected, np.uint32),
            cell=np.zeros(selected, np.float32),
            acc=np.zeros(selected, np.float32),
            seen=np.zeros((FERN_BITS, FERNS), np.float32),
            sorted=np.zeros((RING, n), np.float32),
        ),
        parts=Parts(np.zeros(n), np.zeros(params.d)),
    )


def named_arrays(state: ModelState) -> dict[str, Array]:
    """The arrays in canonical order, by name, without the empty ones. Views, not copies."""
    return {name: array for name, array in _all_arrays(state) if array.size}


def _all_arrays(state: ModelState) -> Iterator[tuple[str, Array]]:
    net, scaler, tables = state.net, state.scaler, state.tables
    yield from (("level", state.level), ("tally", state.tally), ("tier_level", state.gates.level))
    yield from (
        ("tier_tally", state.gates.tally),
        ("tier_alarms", state.gates.alarms),
        ("clock", state.clock),
        ("head", net.head),
    )
    yield from (("window", state.window), ("alpha", net.alpha), ("wc", net.wc), ("ws", net.ws))
    yield from (("slow_c", net.slow_c), ("slow_s", net.slow_s))
    yield from (("acc_c", net.acc_c), ("acc_s", net.acc_s), ("acc_a", net.acc_a))
    yield from (("seen", scaler.seen), ("mean", scaler.mean), ("var", scaler.var), ("inv_sd", scaler.inv_sd))
    yield from (("clip", scaler.clip), ("low", scaler.low), ("high", scaler.high))
    yield from (("cell", tables.cell), ("marker", tables.marker), ("ring", tables.ring))
    yield from (("valued", tables.valued), ("fern_column", tables.column), ("fern_level", tables.level))
    yield "fern_limit", tables.limit


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
        # A number that was missing in a recent row is missing in the ring.
        if not (np.isfinite(part) | (np.isnan(part) & (name == "ring"))).all():
            raise StateCorrupt(f"model state holds a number that is not finite in {name!r}; use an older snapshot")
        array[...] = part
        at += array.nbytes
    if state.window.size and state.window.max() > 1:
        raise StateCorrupt("model state holds a window entry other than 0 and 1; use an older snapshot")
    ferns = state.tables
    if ferns.column.size and not (
        ferns.column.max() < params.d and 0.0 < ferns.level.min() <= ferns.level.max() < 0.97
    ):
        raise StateCorrupt("model state has a fern that no start would draw; use an older snapshot")
    return state


def _little(array: Array) -> Array:
    return array.astype(array.dtype.newbyteorder("<"), copy=False)
