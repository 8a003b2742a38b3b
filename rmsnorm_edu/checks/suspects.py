"""Wrong programs that `verify` knows: a result that equals one's tells its reason."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsnorm_edu import reference
from rmsnorm_edu.checks.answers import answer
from rmsnorm_edu.checks.shrink import Arguments
from rmsnorm_edu.exercises import EXERCISES, Task, Wrong

if TYPE_CHECKING:
    from rmsnorm_edu.checks.judge import Judge

_RMS_NORM = EXERCISES["rms_norm"]
assert isinstance(_RMS_NORM, Task)
FORWARD = _RMS_NORM.wrongs


def _dx(second_term: float, weights: tuple[int, int] = (1, 1)) -> Callable[..., Any]:
    """dx with its second term times `second_term`, and with powers of the weight in the two."""

    def dx(dy: Any, x: Any, weight: Any, eps: float) -> Any:
        xhat = reference.rms_norm(x, eps=eps)
        rstd = 1 / np.hypot(reference.rms(x)[..., np.newaxis], eps**0.5)
        first, second = (dy * weight**power for power in weights)
        along = np.mean(second * xhat, axis=-1, keepdims=True)
        return (first - second_term * xhat * along) * rstd

    return dx


def _dweight(over: Callable[[Any, Any, float], Any]) -> Callable[..., Any]:
    return lambda dy, x, weight, eps: np.sum(dy * over(x, weight, eps), axis=0)


DX = (
    Wrong(_dx(0.0), "dx lacks its second term: the RMS depends on every x, too."),
    Wrong(_dx(-1.0), "the second term of dx has the wrong sign: it is subtracted."),
    Wrong(_dx(1.0, (0, 0)), "dx lacks the weight: its u is dy * weight."),
    Wrong(_dx(1.0, (2, 2)), "dx has the weight twice: u is dy * weight, once."),
    Wrong(_dx(1.0, (1, 2)), "the second term of dx has the weight twice: u is dy * weight, once."),
    Wrong(_dx(1.0, (1, 0)), "the second term of dx lacks the weight: its u is dy * weight, too."),
)
DWEIGHT = (
    Wrong(
        _dweight(lambda x, weight, eps: np.ones_like(x)),
        "dweight lacks x-hat: this is the gradient of a bias.",
    ),
    Wrong(
        _dweight(lambda x, weight, eps: x),
        "dweight has x where x-hat, the normalised x, belongs.",
    ),
    Wrong(
        _dweight(lambda x, weight, eps: reference.rms_norm(x, weight, eps=eps)),
        "dweight has the weight in it: take x-hat without the weight.",
    ),
)
_KNOWN = {"y": (FORWARD, 0), "dx": (DX, 0), "dweight": (DWEIGHT, 1)}


@dataclass(frozen=True)
class _Seen:
    """A result on `arguments`: `off` by so much, of which rounding explains `allowed`."""

    arguments: Arguments
    mine: Any
    off: Any
    allowed: Any

    @property
    def far(self) -> Any:
        """Where it is far beyond rounding."""
        return self.off > 10 * np.max(self.allowed)


def reason(
    judge: "Judge", function: str, what: str, call: Callable[..., Any], examples: list[Arguments]
) -> str:
    """The reason of the wrong program that explains the errors of `call` on all `examples`, or "".

    It explains one when what `call` gives lies ten times nearer to it than to the truth; near
    enough is what rounding explains, but some number has to be far beyond that, and the wrong
    program has to have a number there, too.
    """
    if what not in _KNOWN or function not in ("forward", "vjp") or judge.rules.p is not None:
        return ""
    wrongs, place = _KNOWN[what]
    found = [_seen(judge, function, place, call, arguments) for arguments in examples]
    seen = [one for one in found if one is not None]  # the others gave something else this time
    return next((wrong.reason for wrong in wrongs if _explains(wrong, seen)), "")


def _seen(
    judge: "Judge",
    function: str,
    place: int,
    call: Callable[..., Any],
    arguments: Arguments,
) -> _Seen | None:
    results = judge.results(function, call, arguments)
    if not isinstance(results, tuple):
        return None
    mine = results[place].astype(np.float64)
    right = next(judge.rules.right(function, arguments))[place]
    return _Seen(arguments, mine, np.abs(mine - right.truth), right.allowed)


def _explains(wrong: Wrong, seen: list[_Seen]) -> bool:
    theirs = [_result(wrong, one) for one in seen]
    pairs = [(one, a) for one, a in zip(seen, theirs, strict=True) if a is not None]
    told = any(np.any(one.far & ~np.isnan(a)) for one, a in pairs)
    return told and len(pairs) == len(seen) and all(_near(*pair) for pair in pairs)


def _result(wrong: Wrong, one: _Seen) -> Any:
    wide = (a.astype(np.float64) if isinstance(a, np.ndarray) else a for a in one.arguments)
    theirs = answer(wrong.answer, tuple(wide)).numbers
    return theirs if theirs is not None and theirs.shape == one.mine.shape else None


def _near(one: _Seen, theirs: Any) -> bool:
    apart = np.nan_to_num(np.abs(one.mine - theirs), nan=0.0)  # 0/0 may have come out as anything
    return bool(np.max(apart) <= max(0.1 * np.max(one.off), 2 * np.max(one.allowed)))
