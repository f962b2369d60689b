"""Level sets."""

import math

import numpy as np

from npstream.study.contour import contour


def test_contour_of_a_bowl_is_a_circle() -> None:
    """Every end of every stroke lies on the circle, and the strokes add up to its length."""
    axis = np.linspace(-2, 2, 81)
    x, y = np.meshgrid(axis, axis)
    strokes = contour(axis, axis, x**2 + y**2, 1.0)

    radii = [math.hypot(*end) for x0, y0, x1, y1 in strokes for end in ((x0, y0), (x1, y1))]
    assert max(abs(radius - 1) for radius in radii) < 1e-3
    assert abs(sum(math.dist(stroke[:2], stroke[2:]) for stroke in strokes) - 2 * math.pi) < 0.01


def test_contour_is_placed_between_unequal_axes() -> None:
    """Rows belong to y and columns to x: the level of x alone is a vertical line."""
    xs, ys = np.array([0.0, 1.0, 2.0]), np.array([10.0, 20.0])
    strokes = contour(xs, ys, np.array([[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]]), 1.5)

    assert [sorted([stroke[:2], stroke[2:]]) for stroke in strokes] == [[(1.5, 10.0), (1.5, 20.0)]]


def test_saddle_keeps_its_high_corners_apart() -> None:
    """A cell with two opposite high corners gets two strokes, each cutting off one of them."""
    unit = np.array([0.0, 1.0])
    for values, corners in (([[1, -1], [-1, 1]], [(0, 0), (1, 1)]), ([[-1, 1], [1, -1]], [(1, 0), (0, 1)])):
        strokes = contour(unit, unit, np.array(values, np.float64), 0.0)
        middles = sorted(((x0 + x1) / 2, (y0 + y1) / 2) for x0, y0, x1, y1 in strokes)

        assert middles == sorted((0.25 + 0.5 * x, 0.25 + 0.5 * y) for x, y in corners)


def test_flat_ground_has_no_contour() -> None:
    """Nothing crosses a level that is never reached."""
    axis = np.linspace(0, 1, 5)
    assert contour(axis, axis, np.zeros((5, 5)), 1.0) == []
