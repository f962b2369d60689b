"""Scores rows with a model file and numpy alone: python score_model_file.py model.npstream rows.csv"""

import json
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np


def load(path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters and arrays by name; the layout is in npstream/codec/snapshot.py and npstream/model/state.py."""
    data = Path(path).read_bytes()
    magic, _, _, length = struct.unpack_from("<8sHHI", data)
    assert magic == b"NPSTREAM", "not a model file"
    header = json.loads(data[16 : 16 + length])
    p = header["params"]["params"]
    d, D, plus, moments = p["d"], p["D"], p["preset"] == "plus", p["input"] == "zscore" or p["one_class"]
    at, arrays = 16 + length, dict[str, Any]()  # the model is the first part
    shapes = [("level", 6), ("tally", 8), ("clock", 6), ("head", 4), ("window", p["window"]), ("alpha", d * D)]
    shapes += [("wc", D), ("ws", D)] + [(name, D) for name in ("acc_c", "acc_s", "acc_a") if plus]
    shapes += [(name, d) for name in ("mean", "m2", "inv_sd") if moments]
    for name, size in shapes:
        kind = {"tally": "<i8", "clock": "<i8", "window": "u1"}.get(name, "<f8")
        arrays[name] = np.frombuffer(data, kind, size, at)
        at += arrays[name].nbytes
    return p, arrays


def score(p: dict[str, Any], a: dict[str, Any], x: Any) -> Any:
    """One score a row; a score above a["level"][0] is an alarm, warm-up and budget permitting."""
    z = np.clip((x - a["mean"]) * a["inv_sd"], -5, 5) if p["input"] == "zscore" else x
    angle = z @ a["alpha"].reshape(p["d"], p["D"])
    scale = 1 / np.sqrt(p["D"]) if p["preset"] == "paper" else 1.0
    return scale * (np.cos(angle) @ a["wc"] + np.sin(angle) @ a["ws"]) + a["head"][2]


if __name__ == "__main__":
    params, arrays = load(sys.argv[1])
    rows = np.loadtxt(sys.argv[2], np.float32, delimiter=",", ndmin=2).astype(np.float64)
    for value in score(params, arrays, rows):
        print(repr(float(value)), int(value > arrays["level"][0]))
