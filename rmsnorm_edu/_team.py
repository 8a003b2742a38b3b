"""Several threads of one process, which take pieces of a loop until none is left."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

_pool: ThreadPoolExecutor | None = None
_size = 0  # how many threads the pool has at most
_lock = threading.Lock()


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run(work: Callable[[int, int], None], count: int, size: int, threads: int) -> None:
    """Call work(start, stop) for pieces of `size` of range(count), by up to `threads` threads.

    The calling thread is one of them. Whoever is free takes the next piece, so that a thread which
    another program disturbs holds nobody up. Which thread has which piece is left open.
    """
    starts = iter(range(0, count, size))  # next() of it is one step for Python: no lock is needed

    def take() -> None:
        for start in starts:
            work(start, min(count, start + size))

    helpers = min(threads, -(-count // size)) - 1
    pending = _submitted(take, helpers)
    try:
        take()
    finally:
        for each in pending:
            if not each.cancel():  # one that has not begun by now has nothing left to do
                each.result()


def _submitted(task: Callable[[], None], times: int) -> list[Future[None]]:
    """`task`, handed to other threads; to fewer where the system has no more of them to give."""
    pending = []
    try:
        for _ in range(times):
            pending.append(_pool_of(times).submit(task))
    except RuntimeError:  # or Python is about to end, and starts none: the caller does it all
        pass
    return pending


def _pool_of(helpers: int) -> ThreadPoolExecutor:
    """The pool, with room for `helpers`; a smaller one that nobody uses ends its threads itself."""
    global _pool, _size
    with _lock:
        if _pool is None or helpers > _size:
            _pool, _size = ThreadPoolExecutor(helpers, "rmsnorm_edu"), helpers
        return _pool


def _forget() -> None:
    """A forked child has none of its parent's threads, and perhaps a lock that nobody opens."""
    global _lock, _pool
    _lock, _pool = threading.Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
