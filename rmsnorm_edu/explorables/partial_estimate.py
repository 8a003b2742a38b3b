"""The figure of the partial chapter: the RMS of the first k features against that of the row."""

import math
from functools import cache

import numpy as np
import traitlets

from rmsnorm_edu import reference
from rmsnorm_edu._inputs import Array
from rmsnorm_edu.explorables.figure import Figure

SIZES = (4, 8, 16, 32, 50, 64, 100, 128, 256, 512, 768, 1024, 2048, 4096)
FEATURES = ("normal", "heavy", "largest", "smallest", "outlier")
POOL = 2**20  # numbers drawn: rows of n of them, at most ROWS
ROWS = 2000
SEED = 2 * POOL  # where the stream of uniform numbers begins
FREEDOM = 3  # of Student's t, the heavy tails
OUTLIER = 30.0
PLACE = 3  # the outlier is feature n // PLACE, counted from 0


def uniforms(start: int, count: int) -> Array:
    """Numbers in (0, 1) from a counter: `count` of them, the first one being number `start`.

    The finalizer of MurmurHash3 (Appleby, public domain) stirs the 32 bits of a counter that goes
    in odd steps; a half is added, so that 0 and 1 are never drawn. The figure's module does the
    same in JavaScript, and gets the same numbers.
    """
    h = np.arange(start + 1, start + 1 + count, dtype=np.uint32) * np.uint32(0x9E3779B9)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = (h ^ (h >> np.uint32(shift))) * np.uint32(factor)
    h ^= h >> np.uint32(16)
    return (h.astype(np.float64) + 0.5) / 2.0**32


@cache
def drawn(freedom: float) -> Array:
    r"""Seeded numbers of Student's t with `freedom` degrees; normal ones where it is infinite.

    $x = \sqrt{q}\,\cos 2\pi v$ with $q = \nu (u^{-2/\nu} - 1)$, or $-2 \ln u$ where ν is infinite,
    u and v uniform. Source: Bailey 1994, Box and Muller 1958. Returns float64 of shape (POOL,),
    read-only: it is kept.
    """
    u, v = uniforms(SEED, POOL), uniforms(SEED + POOL, POOL)
    square = -2 * np.log(u) if freedom == math.inf else freedom * (u ** (-2 / freedom) - 1)
    found: Array = np.sqrt(square) * np.cos(2 * np.pi * v)
    found.flags.writeable = False
    return found


def rows(features: str, n: int) -> Array:
    """The rows of n features that the figure measures, float64 of shape (rows, n).

    "normal": independent, normal. "heavy": independent, Student's t. "largest", "smallest": the
    normal ones sorted by magnitude, that first. "outlier": the normal ones, and feature n // 3 is
    30 times as large. Raises ValueError for other features.
    """
    if features not in FEATURES:
        raise ValueError(f"features = {features!r}; give one of {list(FEATURES)}")
    pool = POOL // 4 if features in ("largest", "smallest") else POOL
    count = min(ROWS, pool // n) * n
    x = drawn(FREEDOM if features == "heavy" else math.inf)[:count].reshape(-1, n)
    if features in ("largest", "smallest"):
        x = np.sort(np.abs(x), axis=-1)
    if features == "outlier":
        x = x.copy()
        x[:, n // PLACE] *= OUTLIER
    return np.flip(x, -1) if features == "largest" else x


def ratios(features: str, n: int, k: int) -> Array:
    r"""$\mathrm{RMS}_k(x) / \mathrm{RMS}(x)$ of each of the `rows`, float64 of shape (rows,)."""
    x = rows(features, n)
    return reference.rms(x[:, :k]) / reference.rms(x)


class PartialEstimate(Figure):
    r"""How far the RMS of the first k features is from the RMS of the whole row.

    The measured ratios $\mathrm{RMS}_k / \mathrm{RMS}$ are those of `ratios`; for independent
    normal features their square is n / k times a Beta(k / 2, (n - k) / 2) variable. Traits: `p` in
    [0.01, 1], the share of the features, k = ⌈np⌉; `n`, one of SIZES; `features`, one of FEATURES.
    """

    name = "partial_estimate"
    label = "Drag p: how well the first features of a row tell the size of the row"
    needs = ("sampling",)
    p = traitlets.Float(0.0625, min=0.01, max=1).tag(sync=True)
    n = traitlets.Enum(SIZES, 1024).tag(sync=True)
    features = traitlets.Enum(FEATURES, "normal").tag(sync=True)
