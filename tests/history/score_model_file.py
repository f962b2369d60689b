"""Scores rows with a model file and numpy alone: python score_model_file.py model.npstream rows.csv"""

import json
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np

FORMATS = {"tally": "<i8", "clock": "<i8", "window": "u1", "fern_column": "<u2"} | dict.fromkeys(
    ("cell", "ring", "fern_level", "fern_limit"), "<f4"
)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def load(path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters and arrays by name; the layout is in npstream/codec/snapshot.py and npstream/model/state.py."""
    data = Path(path).read_bytes()
    magic, _, _, length = struct.unpack_from("<8sHHI", data)
    assert magic == b"NPSTREAM", "not a model file"
    header = json.loads(data[16 : 16 + length])
    p = header["params"]["params"]
    d, D, plus = p["d"], p["D"], p["preset"] == "plus"
    n = d - sum(cells > 0 for cells in p["buckets"])
    shapes: dict[str, Any] = {"level": 6, "tally": 9, "clock": 7, "head": 6, "window": p["window"], "alpha": (n, D)}
    shapes |= {"wc": D, "ws": D} | (dict.fromkeys(("slow_c", "slow_s", "acc_c", "acc_s", "acc_a"), D) if plus else {})
    if p["input"] == "zscore" or p["one_class"]:
        shapes |= dict.fromkeys(("seen", "mean", "var", "inv_sd", "clip"), n)
    if p["one_class"]:
        shapes |= {"low": n, "high": n}
    if plus:
        cells = 17 * n + sum(p["buckets"]) + 32 * 64
        shapes |= {"cell": (cells, 2), "marker": (15, n), "ring": (64, n), "valued": n}
        shapes |= dict.fromkeys(("fern_column", "fern_level", "fern_limit"), (5, 64))
    at, arrays = 16 + length, dict[str, Any]()  # the model is the first part
    for name, shape in shapes.items():
        arrays[name] = np.frombuffer(data, FORMATS.get(name, "<f8"), int(np.prod(shape)), at).reshape(shape)
        at += arrays[name].nbytes
    return p, arrays


def score(p: dict[str, Any], a: dict[str, Any], x: Any) -> Any:
    """One score per row; a score above a["level"][0] is an alarm, warm-up and budget permitting."""
    buckets = np.array(p["buckets"] or [0] * p["d"])
    numbers = x[:, buckets == 0]
    z = numbers
    if p["input"] == "zscore":
        z = np.nan_to_num(np.clip((numbers - a["mean"]) * a["inv_sd"], -a["clip"], a["clip"]))
    angle = z @ a["alpha"]
    scale = 1 / np.sqrt(p["D"]) if p["preset"] == "paper" else 1.0
    wc, ws, bias = a["wc"], a["ws"], a["head"][1]
    if "slow_c" in a:
        share = a["head"][4]
        wc, ws = wc + share * (a["slow_c"] - wc), ws + share * (a["slow_s"] - ws)
        bias = bias + share * (a["head"][3] - bias)
    network = scale * (np.cos(angle) @ wc + np.sin(angle) @ ws) + bias
    return network + (tables(p, a, numbers, x[:, buckets > 0], buckets[buckets > 0]) if "cell" in a else 0.0)


def tables(p: dict[str, Any], a: dict[str, Any], numbers: Any, categories: Any, buckets: Any) -> Any:
    """The selected cells: one for each column, one for each fern. None are used before 16 rows were learned."""
    n, d = numbers.shape[1], p["d"]
    cell = np.where(np.isnan(numbers), 16, (a["marker"].T[None] < numbers[:, :, None]).sum(axis=2))
    codes = np.where(np.isnan(categories), 2**24, categories).astype(np.uint64)
    hashed = words(p["seed"], codes, np.arange(n, d)) % buckets.astype(np.uint64)
    column = a["fern_column"].astype(int)
    seen = numbers.astype(np.float32)[:, np.minimum(column, n - 1)] if n else None
    number_bits = None if seen is None else np.where(np.isnan(seen), a["fern_level"] >= 0.5, seen > a["fern_limit"])
    places = d + 64 * np.arange(5)[:, None] + np.arange(64)
    coins = words(p["seed"], codes[:, np.maximum(column - n, 0)], places) >> np.uint64(63) if d > n else None
    bits = coins if number_bits is None else number_bits if coins is None else np.where(column < n, number_bits, coins)
    ferns = (np.asarray(bits) * (1 << np.arange(5))[:, None]).sum(axis=1)
    first = np.cumsum([0, *([17] * n), *buckets, *([32] * 63)])
    at = first + np.concatenate([cell, hashed.astype(int), ferns.astype(int)], axis=1)
    return a["cell"][at, 0].sum(axis=1, dtype=np.float64) * (a["clock"][6] >= 16)


def words(seed: int, codes: Any, places: Any) -> Any:
    """A hash of each category at each place (splitmix64)."""
    with np.errstate(over="ignore"):
        key = mix(mix(np.uint64(seed) + GOLDEN) ^ (np.uint64(2**64 - 1) * GOLDEN))
        return mix(mix(key + (codes + np.uint64(1)) * GOLDEN) ^ (places.astype(np.uint64) * GOLDEN))


def mix(word: Any) -> Any:
    """The finaliser of splitmix64."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


if __name__ == "__main__":
    params, arrays = load(sys.argv[1])
    rows = np.genfromtxt(sys.argv[2], np.float32, delimiter=",", ndmin=2).astype(np.float64)
    for value in score(params, arrays, rows):
        print(repr(float(value)), int(value > arrays["level"][0]))
