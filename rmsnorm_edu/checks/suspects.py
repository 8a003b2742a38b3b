"""Wrong programs that `verify` knows: a result that equals one's tells its reason."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rmsnorm_edu import conventions
from rmsnorm_edu.checks.answers import answer
from rmsnorm_edu.checks.shrink import Arguments
from rmsnorm_edu.exercises import EXERCISES, Task, Wrong
from rmsnorm_edu.mutants import MUTANTS, Mutant, RMSNorm

if TYPE_CHECKING:
    from rmsnorm_edu.checks.judge import Judge


def _mutants(path: str, function: Callable[[Mutant], Callable[..., Any]]) -> tuple[Wrong, ...]:
    chosen = (m for m in MUTANTS.values() if m.path == path)
    return tuple(Wrong(function(m), m.what) for m in chosen)


_RMS_NORM = EXERCISES["rms_norm"]
assert isinstance(_RMS_NORM, Task)
_FORWARD = (
    *_RMS_NORM.wrongs,
    *_mutants("forward", lambda m: m.forward),
    *_mutants("memory", lambda m: m.forward),
)
_DX = _mutants("dx", lambda m: lambda *a: m.vjp(*a)[0])
_DWEIGHT = _mutants("dweight", lambda m: lambda *a: m.vjp(*a)[1])
_KNOWN = {"y": (_FORWARD, 0), "dx": (_DX, 0), "dweight": (_DWEIGHT, 1)}
_TORCH = RMSNorm()
_OTHER_CONVENTION = {
    "y": Wrong(_TORCH.forward, ""),
    "dx": Wrong(lambda *a: _TORCH.vjp(*a)[0], ""),
    "dweight": Wrong(lambda *a: _TORCH.vjp(*a)[1], ""),
}


@dataclass(frozen=True)
class _Seen:
    """A result on `arguments`, in float64 and with the gain as weight; it is `off` by so much, of
    which rounding explains `allowed`.
    """

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
    program has to have a number there, too. A program that is right elsewhere, with eps inside
    and the convention's gain, has no reason here: mutants that fail in a corner resemble it.
    """
    if what not in _KNOWN or function not in ("forward", "vjp") or judge.rules.p is not None:
        return ""
    wrongs, place = _KNOWN[what]
    found = [_seen(judge, function, place, call, arguments) for arguments in examples]
    seen = [one for one in found if one is not None]  # the others gave something else this time
    if _explains(_OTHER_CONVENTION[what], seen):
        return ""
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
    *arrays, weight, eps = arguments
    gain = weight.astype(np.float64) + conventions.get(judge.rules.convention).gain_offset
    wide = (*(a.astype(np.float64) for a in arrays), gain, eps)
    return _Seen(wide, mine, np.abs(mine - right.truth), right.allowed)


def _explains(wrong: Wrong, seen: list[_Seen]) -> bool:
    theirs = [_result(wrong, one) for one in seen]
    pairs = [(one, a) for one, a in zip(seen, theirs, strict=True) if a is not None]
    told = any(np.any(one.far & ~np.isnan(a)) for one, a in pairs)
    return told and len(pairs) == len(seen) and all(_near(*pair) for pair in pairs)


def _result(wrong: Wrong, one: _Seen) -> Any:
    theirs = answer(wrong.answer, one.arguments).numbers
    return theirs if theirs is not None and theirs.shape == one.mine.shape else None


def _near(one: _Seen, theirs: Any) -> bool:
    apart = np.nan_to_num(np.abs(one.mine - theirs), nan=0.0)  # 0/0 may have come out as anything
    return bool(np.max(apart) <= max(0.1 * np.max(one.off), 2 * np.max(one.allowed)))
