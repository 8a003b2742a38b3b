"""The exercises of the chapter "The forward kernel"."""

import numpy as np

from rmsnorm_edu.exercises.model import Array, Conviction, Exercise, Task, Wrong, ideal


def _block(d: int) -> int:
    return 1 << (d - 1).bit_length()


def _up(a: float, b: float) -> int:
    """a / b, rounded up."""
    return int(-(-a // b))


def _tile_programs(rows: int, d: int, lanes: int) -> int:
    return _up(rows, max(1, lanes // _block(d)))


_TILE_PROGRAMS = Task(
    "tile_programs(rows, d, lanes)",
    _tile_programs,
    cases=(
        (1, 1, 1),
        (8, 128, 1024),
        (9, 128, 1024),
        (100, 96, 1024),
        (1000, 64, 2048),
        (7, 4096, 1024),
        (262144, 100, 1024),
    ),
    example=(9, 128, 1024),
    wrongs=(
        Wrong(
            lambda rows, d, lanes: rows,
            "that is one program a row: a tile has room for lanes // block rows.",
        ),
        Wrong(
            lambda rows, d, lanes: rows // max(1, lanes // _block(d)),
            "the last tile may be part full: round the programs up.",
        ),
        Wrong(
            lambda rows, d, lanes: _up(rows, max(1, lanes // d)),
            "a row takes a whole block, the next power of two of d.",
        ),
        Wrong(
            lambda rows, d, lanes: _up(rows * _block(d), lanes),
            "a row is not cut: where the block is longer than lanes, a tile still has one row.",
        ),
        Wrong(
            lambda rows, d, lanes: max(1, lanes // _block(d)),
            "that is how many rows a tile has: how many tiles do all rows need?",
        ),
    ),
)


def _rows_to_ask_for(bandwidth: float, latency: float, sms: int, row: int) -> int:
    return _up(round(bandwidth * latency / sms, 6), row)


_ROWS_TO_ASK_FOR = Task(
    "rows_to_ask_for(bandwidth, latency, sms, row)",
    _rows_to_ask_for,
    cases=(
        (100.0, 1.0, 1, 100),
        (101.0, 1.0, 1, 100),
        (1000.0, 2.0, 4, 250),
        (320e9, 5e-7, 40, 4096),
        (3350e9, 6e-7, 132, 8192),
        (3350e9, 6e-7, 132, 65536),
        (8000e9, 6e-7, 148, 256),
    ),
    example=(1000.0, 2.0, 4, 250),
    wrongs=(
        Wrong(
            lambda bandwidth, latency, sms, row: _up(bandwidth * latency, row),
            "that is how many rows the whole chip needs: its SMs share them.",
        ),
        Wrong(
            lambda bandwidth, latency, sms, row: bandwidth * latency / sms / row,
            "a row is asked for as a whole: round up.",
        ),
        Wrong(
            lambda bandwidth, latency, sms, row: int(bandwidth * latency / sms / row),
            "you rounded down: then the memory is idle for a while. Round up.",
        ),
        Wrong(
            lambda bandwidth, latency, sms, row: bandwidth * latency / sms,
            "these are bytes: how many rows of `row` bytes are they?",
        ),
        Wrong(
            lambda bandwidth, latency, sms, row: _up(bandwidth / sms, row),
            "that is what an SM gets in a second: it waits for `latency` seconds only.",
        ),
    ),
)


def _rows_at_once(sms: int, threads: int, warps: int) -> int:
    return sms * (threads // (32 * warps))


_BYTES_AT_ONCE = Task(
    "bytes_at_once(sms, threads, warps, row)",
    lambda sms, threads, warps, row: _rows_at_once(sms, threads, warps) * row,
    cases=(
        (1, 32, 1, 4),
        (2, 1024, 8, 100),
        (40, 1024, 8, 65536),
        (132, 2048, 8, 262144),
        (132, 2048, 32, 131072),
        (3, 1536, 32, 1000),
    ),
    example=(2, 1024, 8, 100),
    wrongs=(
        Wrong(
            lambda sms, threads, warps, row: sms * row,
            "an SM holds several programs at once, as many as its threads allow.",
        ),
        Wrong(
            lambda sms, threads, warps, row: sms * (threads // warps) * row,
            "a warp has 32 threads: a program takes 32 * warps of them.",
        ),
        Wrong(
            lambda sms, threads, warps, row: sms * threads / (32 * warps) * row,
            "a part of a program does not fit: round its number down, on each SM.",
        ),
        Wrong(
            lambda sms, threads, warps, row: (sms * threads // (32 * warps)) * row,
            "a program does not run on parts of two SMs: round down on each SM, then multiply.",
        ),
        Wrong(
            lambda sms, threads, warps, row: threads // (32 * warps) * row,
            "that is one SM: the chip has sms of them.",
        ),
    ),
)


def in_pairs(x: Array) -> Array:
    """Broken: stores two numbers at a time without a mask; odd rows end in the next one."""
    rows, d = x.shape
    memory = np.zeros(rows * d + 1)
    for row in reversed(range(rows)):  # a GPU takes them in any order
        lanes = np.zeros(d + d % 2)
        lanes[:d] = ideal(x[row])
        memory[row * d : row * d + len(lanes)] = lanes
    return memory[:-1].reshape(rows, d)


_CONVICT_PAIRS = Conviction(
    "evidence()",
    in_pairs,
    ideal,
    innocent=np.array([[3.0, 4.0], [1.0, -7.0]]),
    hint="with an even number of features all pairs lie inside their row. Take an odd number, "
    "and a second row behind the first.",
)

EXERCISES: dict[str, Exercise] = {
    "tile_programs": _TILE_PROGRAMS,
    "rows_to_ask_for": _ROWS_TO_ASK_FOR,
    "bytes_at_once": _BYTES_AT_ONCE,
    "convict_pairs": _CONVICT_PAIRS,
}
