"""Where a function of two variables crosses a level: marching squares."""

from collections.abc import Iterator

from npstream.arrays import Floats

Stroke = tuple[float, float, float, float]


def contour(xs: Floats, ys: Floats, values: Floats, level: float) -> list[Stroke]:
    """Strokes (x0, y0, x1, y1) of the level set, by linear interpolation.

    `values` has one row a y and one column an x, both ascending. A cell whose
    opposite corners are above (a saddle) gets two strokes that keep them apart.
    """
    return [
        stroke
        for i in range(len(ys) - 1)
        for j in range(len(xs) - 1)
        for stroke in _cell(xs[j : j + 2], ys[i : i + 2], values[i : i + 2, j : j + 2] - level)
    ]


def _cell(xs: Floats, ys: Floats, v: Floats) -> Iterator[Stroke]:
    """Crossings of the four sides, walked around the cell, joined two by two."""
    corners = [(xs[0], ys[0], v[0, 0]), (xs[1], ys[0], v[0, 1]), (xs[1], ys[1], v[1, 1]), (xs[0], ys[1], v[1, 0])]
    crossings = []
    for k in range(4):
        (x0, y0, a), (x1, y1, b) = corners[k], corners[(k + 1) % 4]
        if (a > 0) != (b > 0):
            share = a / (a - b)
            crossings.append((float(x0 + share * (x1 - x0)), float(y0 + share * (y1 - y0))))
    if len(crossings) == 4 and v[0, 0] > 0:
        # Around a saddle whose first corner is above, the first side belongs with the last one.
        crossings = crossings[3:] + crossings[:3]
    for (x0, y0), (x1, y1) in zip(crossings[::2], crossings[1::2], strict=True):
        yield x0, y0, x1, y1
