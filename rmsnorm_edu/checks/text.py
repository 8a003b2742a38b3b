"""How judges print calls, numbers and verdicts."""

import html
from typing import Any

import numpy as np


def shown(value: Any) -> str:
    """`value` as a reader would type it, short."""
    if isinstance(value, np.ndarray) and value.dtype.name in ("float16", "bfloat16"):
        value = value.astype(np.float64)
    if isinstance(value, np.ndarray | np.number | float):
        return _numbers(np.asarray(value))
    try:
        if callable(value) and hasattr(value, "__name__"):
            return str(value.__name__)
        text = " ".join(repr(value).split())
    except Exception:  # the reader's object: its methods may do anything
        text = f"a {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."


def of_error(error: BaseException) -> str:
    """``ValueError: message``, in one line."""
    try:
        message = " ".join(str(error).split())
    except Exception:  # its __str__ may do anything
        message = ""
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _numbers(a: Any) -> str:
    if a.ndim == 0:
        return f"{float(a):.6g}" if a.dtype.kind == "f" else str(a)
    if a.size > 24:
        return f"<array of shape {a.shape}>"
    text = np.array2string(a, separator=", ", formatter={"float_kind": lambda v: f"{v:.6g}"})
    return " ".join(text.split())


def call(name: str, arguments: tuple[Any, ...]) -> str:
    """``name(argument, argument)``."""
    return f"{name}({', '.join(shown(a) for a in arguments)})"


def lines(head: str, gave: str, should: str) -> str:
    """The call on the left, what it gave and should give on the right, below each other."""
    if len(head) > 48:
        return f"{head}\n  gave       {gave}\n  should be  {should}"
    return f"{head}  gave       {gave}\n{' ' * len(head)}  should be  {should}"


def boxed(ok: bool, text: str, code: str) -> str:
    """The verdict as HTML, in the book's class `check`."""
    mark = f'<b aria-hidden="true">{"✓" if ok else "○"}</b>'
    said = f"<pre>{html.escape(code)}</pre>" if code else ""
    kind = "check is-right" if ok else "check"
    return f'<div class="{kind}"><p>{mark} {html.escape(text)}</p>{said}</div>'


def plain(ok: bool, text: str, code: str) -> str:
    """The verdict as text."""
    return f"{'✓' if ok else '○'} {text}" + (f"\n{code}" if code else "")
