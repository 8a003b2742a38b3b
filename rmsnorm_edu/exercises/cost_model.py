"""The exercises of the chapter "What a norm costs"."""

from rmsnorm_edu.exercises.model import Exercise, Task, Wrong


def _backward_bytes(rows: int, n: int, size: int) -> int:
    return 3 * rows * n * size + 2 * n * size + 4 * rows


_BACKWARD_BYTES = Task(
    "backward_bytes(rows, n, size)",
    _backward_bytes,
    cases=((1, 1, 4), (2, 3, 2), (5, 7, 4), (64, 1024, 2)),
    example=(2, 3, 2),
    wrongs=(
        Wrong(
            lambda rows, n, size: 2 * rows * n * size + n * size + 4 * rows,
            "these are the bytes of the forward: the backward reads dy and x, and writes dx.",
        ),
        Wrong(
            lambda rows, n, size: 3 * rows * n * size + n * size + 4 * rows,
            "the weight is read and its gradient is written: 2 n numbers.",
        ),
        Wrong(
            lambda rows, n, size: 3 * rows * n * size + 2 * n * size,
            "1/D of each row is read, too: 4 bytes a row.",
        ),
        Wrong(
            lambda rows, n, size: (3 * rows * n + 2 * n + rows) * size,
            "1/D is kept in float32 whatever the type of x: 4 bytes a row.",
        ),
        Wrong(
            lambda rows, n, size: 3 * rows * n + 2 * n + rows,
            "these are numbers, not bytes: each has `size` bytes, 1/D has 4.",
        ),
        Wrong(
            lambda rows, n, size: 3 * rows * n * size + 2 * rows * n * size + 4 * rows,
            "the weight comes from memory once, not once for each row: the cache keeps it.",
        ),
    ),
)


def _most_programs(rows: int, size: int, share: float) -> int:
    return max(1, int(share * 3 * rows * size / 8))


_MOST_PROGRAMS = Task(
    "most_programs(rows, size, share)",
    _most_programs,
    cases=((1, 2, 0.05), (100, 4, 0.1), (100, 2, 0.1), (4096, 2, 0.05), (33333, 4, 0.011)),
    example=(4096, 2, 0.05),
    wrongs=(
        Wrong(
            lambda rows, size, share: max(1, int(share * 3 * rows * size / 4)),
            "the partial sums are written and read again: 8 bytes a feature and program.",
        ),
        Wrong(
            lambda rows, size, share: max(1, int(share * 3 * rows / 2)),
            "the partial sums are float32 whatever the type of x.",
        ),
        Wrong(
            lambda rows, size, share: max(1, int(share * 2 * rows * size / 8)),
            "a backward moves three large arrays: dy, x and dx.",
        ),
        Wrong(
            lambda rows, size, share: max(1, -int(-share * 3 * rows * size // 8)),
            "rounded up there is one too many: round down.",
        ),
        Wrong(
            lambda rows, size, share: max(1.0, share * 3 * rows * size / 8),
            "a number of programs is whole: round down.",
        ),
        Wrong(
            lambda rows, size, share: int(share * 3 * rows * size / 8),
            "somebody has to do the work: give at least 1.",
        ),
    ),
)


def _time(kernels: int, moved: float, bandwidth: float, start: float) -> float:
    return kernels * start + moved / bandwidth


_KERNELS_TIME = Task(
    "time(kernels, moved, bandwidth, start)",
    _time,
    cases=((1, 8.0, 4.0, 1.0), (6, 100.0, 40.0, 0.5), (3, 5e9, 2e9, 6e-6), (8, 1e6, 3e12, 6e-6)),
    example=(6, 100.0, 40.0, 0.5),
    wrongs=(
        Wrong(
            lambda kernels, moved, bandwidth, start: start + moved / bandwidth,
            "each kernel pays the start.",
        ),
        Wrong(
            lambda kernels, moved, bandwidth, start: kernels * (start + moved / bandwidth),
            "`moved` are the bytes of all kernels together: do not multiply them.",
        ),
        Wrong(
            lambda kernels, moved, bandwidth, start: max(kernels * start, moved / bandwidth),
            "the bytes come after the start: add the two.",
        ),
        Wrong(
            lambda kernels, moved, bandwidth, start: kernels * start + moved * bandwidth,
            "bytes over bytes a second are seconds: divide.",
        ),
        Wrong(
            lambda kernels, moved, bandwidth, start: moved / bandwidth,
            "the starts are missing.",
        ),
    ),
)


def _from_cache(rows: int, n: int, size: int, seconds: float, memory: float) -> float:
    return max(0.0, 3 * rows * n * size - memory * seconds)


_FROM_CACHE = Task(
    "from_cache(rows, n, size, seconds, memory)",
    _from_cache,
    cases=(
        (1, 10, 2, 0.5, 100.0),
        (1, 10, 2, 0.5, 200.0),
        (2, 10, 4, 1.0, 100.0),
        (4096, 2048, 2, 7.5e-6, 4.1e12),
        (4096, 8192, 2, 25.1e-6, 4.1e12),
        (4096, 16384, 2, 97.4e-6, 4.2e12),
    ),
    example=(4096, 8192, 2, 25.1e-6, 4.1e12),
    wrongs=(
        Wrong(
            lambda rows, n, size, seconds, memory: 3 * rows * n * size - memory * seconds,
            "the memory was fast enough for all of it: then nothing must have come from a cache.",
        ),
        Wrong(
            lambda rows, n, size, seconds, memory: max(0.0, 2 * rows * n * size - memory * seconds),
            "three large arrays are moved: dx is written, too.",
        ),
        Wrong(
            lambda rows, n, size, seconds, memory: max(0.0, 3 * rows * n - memory * seconds),
            "these are numbers, not bytes: each has `size` bytes.",
        ),
        Wrong(
            lambda rows, n, size, seconds, memory: min(3 * rows * n * size, memory * seconds),
            "this is what the memory can have given: the rest is asked for.",
        ),
        Wrong(
            lambda rows, n, size, seconds, memory: max(
                0.0, 1 - memory * seconds / (3 * rows * n * size)
            ),
            "this is a share: give bytes.",
        ),
        Wrong(
            lambda rows, n, size, seconds, memory: max(0.0, 3 * rows * n * size - memory / seconds),
            "bytes a second times seconds are bytes: multiply.",
        ),
    ),
)

EXERCISES: dict[str, Exercise] = {
    "backward_bytes": _BACKWARD_BYTES,
    "most_programs": _MOST_PROGRAMS,
    "kernels_time": _KERNELS_TIME,
    "from_cache": _FROM_CACHE,
}
