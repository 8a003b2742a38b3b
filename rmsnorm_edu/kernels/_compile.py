"""The child process of `aot`: compiles kernels for GPUs that are not here, and measures the result.

It reads a list of orders in JSON from stdin and writes the answer as the last line of stdout.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from rmsnorm_edu._words import known
from rmsnorm_edu.kernels import backward, forward, fused_add
from rmsnorm_edu.kernels._runtime import triton

OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")  # of a launch, not of the kernel
MODULES = (forward, backward, fused_add)
ROWS, PROCESSORS = 4096, 40  # a T4's
Types = dict[str, Any]
ELEMENTS = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64"}
MOVED = re.compile(r"\b(ld|st)\.global(?:\.\w+::\w+|\.relaxed|\.gpu)*(?:\.v(\d))?\.[busf](\d+)\b")
ROUNDED = re.compile(
    r"\b(?:div|rcp|r?sqrt)\.\w+\.[\w.]*f\d+\b|\b[\w.]+\.(?:approx|ftz|full)\b[\w.]*"
)
COPIED = re.compile(r"\bcp\.async\.c[ag]\.shared\.global[^;]*?\], \[[^]]*\], (\w+)")


@dataclass(frozen=True)
class Launched:
    """A kernel as a host function started it: its arguments by name, and the launch's options."""

    kernel: Any
    arguments: dict[str, Any]
    options: dict[str, int]

    def specialised(self) -> tuple[Types, Types, dict[tuple[int], list[list[Any]]]]:
        """Types, constants and hints of the arguments, as the JIT finds them.

        An int of 1 is a constant, a pointer or an int that 16 divides is known to be one.
        """
        types, constants, hints = {}, {}, {}
        for place, parameter in enumerate(self.kernel.params):
            value = self.arguments[parameter.name]
            types[parameter.name] = kind = _type(value, parameter)
            if kind == "constexpr":
                constants[parameter.name] = value
            elif _divisible(value) and not parameter.do_not_specialize:
                hints[(place,)] = [["tt.divisibility", 16]]
        return types, constants, hints

    def compiled(self, arch: int) -> Any:
        """The kernel for sm_`arch`."""
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource

        source = ASTSource(self.kernel, *self.specialised())
        return triton.compile(source, target=GPUTarget("cuda", arch, 32), options=self.options)


def _type(value: Any, parameter: Any) -> str:
    """Triton's name of an argument's type."""
    if parameter.is_constexpr:
        return "constexpr"
    if isinstance(value, Tensor):
        return "*" + ELEMENTS[str(value.dtype).removeprefix("torch.")]
    if value == 1 and not parameter.do_not_specialize:
        return "constexpr"
    if isinstance(value, float):
        return "fp32"
    return "i32" if -(2**31) <= value < 2**31 else "i64"


def _divisible(value: Any) -> bool:
    """Whether the JIT finds that 16 divides it: torch's memory starts at such an address."""
    return isinstance(value, Tensor) or (isinstance(value, int) and value % 16 == 0)


def resources(kernel: Any) -> dict[str, Any]:
    """Registers and spilled bytes of a thread, shared ones of a program, what its PTX holds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(kernel.asm["cubin"])
        command = [tool("cuobjdump"), "--dump-resource-usage", str(path)]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = dict(re.findall(r"(REG|STACK):(\d+)", said))
    return {
        "registers": int(found["REG"]),
        "shared": kernel.metadata.shared,
        "spilled": int(found["STACK"]),  # nothing else in these kernels lies on a thread's stack
        **widths(kernel.asm["ptx"]),
        "arithmetic": arithmetic(kernel.asm["ptx"]),
    }


def tool(name: str) -> str:
    """The path of a tool of NVIDIA's that comes with Triton's wheel."""
    path = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / name
    if not path.exists():
        raise ImportError(
            f"this Triton has no {name} in {path.parent}, so it compiles for no NVIDIA GPU: "
            'install the published wheel, pip install "rmsnorm_edu[triton]"'
        )
    return str(path)


def widths(ptx: str) -> dict[str, dict[str, int]]:
    """How many instructions of `ptx` load and store global memory, by their width in bits."""
    counts: dict[str, Counter[int]] = {"ld": Counter(), "st": Counter()}
    for kind, several, bits in MOVED.findall(ptx):
        counts[kind][int(several or 1) * int(bits)] += 1
    for size in COPIED.findall(ptx):
        counts["ld"][8 * int(size, 0)] += 1
    loads, stores = ({str(w): c[w] for w in sorted(c, reverse=True)} for c in counts.values())
    return {"loads": loads, "stores": stores}


def arithmetic(ptx: str) -> dict[str, int]:
    """How many instructions of `ptx` divide, take a root or approximate, by their names.

    Rounded to the nearest number (``rn``), or not: ``approx``, ``full``; ``ftz`` takes numbers
    below the type's smallest normal one for 0.
    """
    return dict(sorted(Counter(ROUNDED.findall(ptx)).items()))


@contextmanager
def recorded() -> Iterator[list[Launched]]:
    """Within it, the kernels' host functions start nothing: what they would start is in the list.

    So what is compiled is what runs.
    """
    found: list[Launched] = []

    def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **named: Any) -> None:
        options = {name: named.pop(name) for name in OPTIONS if name in named}
        positional = dict(zip(kernel.arg_names, arguments, strict=False))
        found.append(Launched(kernel, positional | named, options))

    with ExitStack() as patched:
        for module in MODULES:
            patched.enter_context(mock.patch.object(module, "launch", launch))
            if hasattr(module, "processors"):
                count = mock.Mock(return_value=PROCESSORS)
                patched.enter_context(mock.patch.object(module, "processors", count))
        yield found


def hosts(d: int, dtype: torch.dtype, bias: bool) -> dict[str, Callable[[str | None], Any]]:
    """What starts each file's kernels for rows of d features, of a rung or of its own choice.

    The tensors have no memory: a host needs their shapes and types alone.
    """
    x = torch.empty(ROWS, d, dtype=dtype, device="meta")
    w, rstd = x[0], torch.empty(ROWS, device="meta")
    return {
        "forward": lambda rung: forward.forward(x, w, w if bias else None, rung=rung),
        "backward": lambda rung: backward.backward(x, x, w, rstd, has_bias=bias, rung=rung),
        "add_forward": lambda rung: _without(rung, fused_add.forward(x, x, w)),
        "add_backward": lambda rung: _without(rung, fused_add.backward(x, x, x, w, rstd)),
    }


def _without(rung: str | None, started: Any) -> None:
    if rung is not None:
        raise ValueError(f"rung = {rung!r}; the residual add has none to choose from")


def measured(order: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The entries of `aot.report`."""
    for dtype in order["dtypes"]:
        start = hosts(order["d"], getattr(torch, dtype), order["bias"])
        for word in order["kernels"] or start:
            host, _, rung = word.partition(".")
            with recorded() as found:
                known(host, start, "kernel")(rung or None)
            once = {str(each.specialised()) + each.kernel.__name__: each for each in found}
            for launched in once.values():
                yield from _entries(launched, host, dtype, order)


def _entries(
    launched: Launched, host: str, dtype: str, order: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    name, warps = f"{host}.{launched.kernel.fn.__name__}", launched.options.get("num_warps", 4)
    for arch in order["arches"]:
        entry = {"kernel": name, "d": order["d"], "arch": arch, "dtype": dtype, "warps": warps}
        yield entry | resources(launched.compiled(arch))


def main() -> None:
    """Answer the orders on stdin: {"entries": [...]}, or {"error": text, "type": its class}."""
    try:
        tool("ptxas")
        found = [entry for order in json.load(sys.stdin) for entry in measured(order)]
        answer: dict[str, Any] = {"entries": found}
    except (ImportError, ValueError) as error:
        answer = {"error": str(error), "type": type(error).__name__}
    print("\n" + json.dumps(answer), end="")


if __name__ == "__main__":
    main()
