"""What computes a norm: torch's operations, numba's loops on a CPU, or the Triton kernels.

"auto" takes the quickest that changes no bit of a row on a CPU; a word takes that one, or is an
error that says why not.
"""

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor
from torch._C import _get_tracing_state
from torch.utils._python_dispatch import is_in_torch_dispatch_mode

from rmsnorm_edu.nn import _arithmetic, _blocked
from rmsnorm_edu.nn._arithmetic import Rule

Vector = Tensor | None
BACKENDS = ("auto", "eager", "numba", "triton")
EXTRAS = {"numba": "cpu", "triton": "triton"}
INSTALLED = {library: find_spec(library) is not None for library in EXTRAS}
# From so many elements on numba is not slower: below, the data stay in a cache between operations,
# and nobody waits for a compiler.
LARGE = 2**21


def checked_backend(backend: str) -> str:
    """A word of `BACKENDS` whose library is there; ValueError, ImportError."""
    if backend not in BACKENDS:
        raise ValueError(f"backend = {backend!r}; there are {', '.join(BACKENDS)}")
    if backend in EXTRAS and not INSTALLED[backend]:
        raise ImportError(
            f"backend = {backend!r} needs {backend}, which is not installed: "
            f'pip install "rmsnorm_edu[{EXTRAS[backend]}]"'
        )
    return backend


def chosen(backend: str, rule: Rule, x: Tensor, weight: Vector, bias: Vector) -> str:
    """Which of "eager", "numba" and "triton" computes this norm of x (rows, n), outside a compiler.

    Where operations are watched, to be traced or counted, it is "eager": they must be seen.
    """
    if backend in EXTRAS:
        refuse(backend, rule, x, weight, bias)
    if backend == "eager" or x.is_meta or _get_tracing_state() or is_in_torch_dispatch_mode():
        return "eager"
    return _automatic(rule, x, weight, bias) if backend == "auto" else backend


def traced(backend: str, rule: Rule, x: Tensor, weight: Vector, bias: Vector) -> Tensor:
    """y, for torch.compile to take whole: plain operations, which it fuses itself, or `backend`'s.

    torch.export gets plain operations always: what it writes may run where no backend is.
    """
    if backend not in EXTRAS or torch.compiler.is_exporting():
        return _arithmetic.forward(rule, x, weight, bias)
    refuse(backend, rule, x, weight, bias)
    if backend == "numba":
        from rmsnorm_edu.nn import _numba

        return _numba.traced(rule, x, weight, bias)
    from rmsnorm_edu.nn import _triton

    return _triton.traced(rule, x, weight, bias)


def _automatic(rule: Rule, x: Tensor, weight: Vector, bias: Vector) -> str:
    if not are_plain(x, weight, bias):
        return "eager"
    if x.is_cuda:
        good = casting(rule, x, weight, bias) is not None and _compiles()
        return "triton" if good else "eager"
    large = x.device.type == "cpu" and x.numel() >= LARGE and INSTALLED["numba"]
    good = large and _blocked.rounds_nothing(rule, x, weight, bias) and _is_exact(x.dtype)
    return "numba" if good else "eager"


@cache
def _is_exact(dtype: torch.dtype) -> bool:
    """Whether numba works here, and has torch's bits."""
    try:
        from rmsnorm_edu.nn import _numba

        return _numba.has_torchs_bits(dtype)
    except ImportError:  # numba refuses a NumPy that is too new for it
        return False


@cache
def _compiles() -> bool:
    """Whether the kernels are there, and are compiled for a GPU in this process."""
    try:
        return INSTALLED["triton"] and not _interprets()
    except (ImportError, RuntimeError):  # a broken Triton, or one that interprets already
        return False


def _interprets() -> bool:
    from rmsnorm_edu.kernels._runtime import INTERPRETED

    return INTERPRETED


def refuse(backend: str, rule: Rule, x: Tensor, weight: Vector, bias: Vector) -> None:
    """ValueError, with the fix, where `backend`, "numba" or "triton", cannot compute this norm."""
    kind = x.device.type
    if backend == "numba" and kind not in ("cpu", "meta"):
        raise ValueError(f"backend = 'numba' and x is on {x.device}: give x.cpu(), or 'auto'")
    if backend == "triton" and kind == "cpu" and not _interprets():
        raise ValueError(
            "backend = 'triton' and x is on the CPU, where Triton compiles for a GPU: give "
            "x.to('cuda'), or start Python with TRITON_INTERPRET=1 to interpret the kernels"
        )
    known = _blocked.rounds_nothing if backend == "numba" else casting
    if not known(rule, x, weight, bias):
        types = [None if t is None else str(t.dtype) for t in (x, weight, bias)]
        raise ValueError(
            f"backend = {backend!r} does not know this norm: x, weight and bias of {types}, "
            f"k = {rule.k} of n = {x.shape[1]}, the arithmetic of {rule.convention.source}; "
            "give backend='auto', which finds one that does"
        )


def casting(rule: Rule, x: Tensor, weight: Vector, bias: Vector) -> str | None:
    """The word of the kernels for what `rule` rounds on the way; None if they round otherwise."""
    c, wide = rule.convention, _arithmetic.computing_type(x.dtype)
    vectors = {t.dtype for t in (weight, bias) if t is not None}
    moved = c.cast_first is not None and not vectors <= {x.dtype}
    if moved or _blocked.another_order(c) or rule.k != x.shape[1]:
        return None
    if torch.float64 in vectors and wide != torch.float64:
        return None
    if weight is not None and c.gain_offset and _arithmetic.computing_type(weight.dtype) != wide:
        return None  # the kernels add it in x's type, plain operations in the weight's
    halves = {"gain"} if weight is not None and weight.dtype.itemsize == 2 else set()
    if set(c.rounds) & (halves if x.dtype == wide else {*c.rounds} - {"xhat"}):
        return None
    output = _arithmetic.output_type(c, x.dtype, weight)
    if _arithmetic.xhat_type(c, x.dtype, weight) == wide:
        return "torch" if output == x.dtype else None
    promoted = x.dtype if weight is None else torch.promote_types(x.dtype, weight.dtype)
    return "llama" if bias is None and output == promoted else None


def are_plain(*tensors: Vector) -> bool:
    """Whether the memory of each holds its numbers.

    It does not in a subclass (but Parameter), a batch of a transform, and the imaginary part of a
    conjugate, whose minus torch keeps in mind.
    """
    return all(_is_plain(t) for t in tensors if t is not None)


def _is_plain(t: Tensor) -> bool:
    if type(t) not in (Tensor, torch.nn.Parameter) or t.is_neg():
        return False
    try:
        t.data_ptr()
    except RuntimeError:
        return False
    return True
