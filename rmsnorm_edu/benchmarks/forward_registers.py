"""What the compiler makes of the forward rungs as a row grows: registers, spills, shared memory.

No time is in it, and no GPU is needed: Triton compiles for one that is not there. It compiles in
a process of its own, because a process that interprets cannot.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from typing import Any

BLOCKS = tuple(2**k for k in range(10, 17))
ARCHES = (75, 90)
WARPS = (8, 32)
LOOPED = (4, 8, 16, 32)  # warps of the loop along the longest row
STAGED = 4096  # columns of a row of the pipelined rung
STAGES = (2, 3, 4)


def measure() -> dict[str, Any]:
    """float32 rows; each list goes along "blocks" or "stages", by architecture (75: sm_75).

    "registers" and "spilled" bytes of a thread: of one_row, by the number of warps, then by
    architecture; "shared" bytes of a program: of the pipelined rung. On sm_90, for the longest
    row: "bare" is one_row without a weight, and "loop" has the registers of long_row by type,
    along "loop_warps".
    """
    from rmsnorm_edu.kernels import _runtime  # noqa: F401  # so that a record names Triton's version

    with tempfile.TemporaryDirectory() as cache:
        child = subprocess.run(
            [sys.executable, "-m", __name__],
            env={**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": cache},
            capture_output=True,
            text=True,
        )
    if child.returncode:
        raise RuntimeError(f"the compiler failed: {child.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
    return found


def _compiled() -> dict[str, Any]:
    from rmsnorm_edu.kernels._choice import Launch

    d, hopper = BLOCKS[-1], ARCHES[-1]
    by_warps = {
        str(warps): {
            str(arch): [_made(Launch("one_row", {"BLOCK": b}, warps), b, arch) for b in BLOCKS]
            for arch in ARCHES
        }
        for warps in WARPS
    }
    shared = {
        str(arch): [
            _made(Launch("pipelined", {"BLOCK": STAGED, "STAGES": stages}, 8), STAGED, arch)
            for stages in STAGES
        ]
        for arch in ARCHES
    }
    bare = _made(Launch("one_row", {"BLOCK": d}, WARPS[0]), d, hopper, weight=False)
    parts = {"blocks": BLOCKS, "stages": STAGES, "staged": STAGED, "loop_warps": LOOPED}
    parts |= {word: _each(by_warps, word) for word in ("registers", "spilled")}
    parts |= {"bare": {word: bare[word] for word in ("registers", "spilled")}}
    return parts | {
        "shared": _each(shared, "shared"),
        "loop": _each(_loops(d, hopper), "registers"),
    }


def _loops(d: int, arch: int) -> dict[str, list[dict[str, Any]]]:
    """long_row in the table's block, by the type and the number of warps."""
    import torch

    from rmsnorm_edu.kernels import _choice

    def loop(dtype: str, warps: int) -> dict[str, Any]:
        plan = _choice.forward_table(d, getattr(torch, dtype))["long_row"]
        return _made(replace(plan, num_warps=warps), d, arch, dtype)

    return {dtype: [loop(dtype, warps) for warps in LOOPED] for dtype in ("float16", "float32")}


def _each(tree: Any, word: str) -> Any:
    """The tree with `word` of each leaf."""
    if isinstance(tree, list):
        return [leaf[word] for leaf in tree]
    return {key: _each(branch, word) for key, branch in tree.items()}


def _made(
    plan: Any, d: int, arch: int, dtype: str = "float32", weight: bool = True
) -> dict[str, Any]:
    """What `aot` says of the forward kernel of this plan."""
    import torch

    from rmsnorm_edu.kernels import _compile, forward
    from rmsnorm_edu.kernels._choice import Flags

    x = torch.empty(4096, d, dtype=getattr(torch, dtype), device="meta")
    with _compile.recorded() as found:
        forward.run(plan, Flags(weight), x, x[0] if weight else None, None, 1e-6)
    made: dict[str, Any] = _compile.resources(found[0].compiled(arch))
    return made


if __name__ == "__main__":
    print(json.dumps(_compiled()))
