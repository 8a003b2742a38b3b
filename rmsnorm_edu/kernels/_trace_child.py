"""The child of `trace`: one pickled request on its input, the recording on its output.

It runs with TRITON_INTERPRET=1, whatever its parent does: one process, one mode.
"""

import dataclasses
import importlib
import io
import linecache
import os
import pickle
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch

from rmsnorm_edu.kernels._choice import Launch
from rmsnorm_edu.kernels._recorder import Recorder


def kernel_from(source: str, name: str) -> Any:
    """The kernel of a text, as a module of its own would define it; its lines can be read back."""
    import triton
    import triton.language as tl

    file = f"{name}.py"
    lines = source.splitlines(keepends=True)
    linecache.cache[file] = (len(source), None, lines, file)
    module = types.ModuleType(f"kernel {name}")  # a kernel may be called `copy`
    module.__dict__.update(triton=triton, tl=tl, __file__=file)
    sys.modules[module.__name__] = module  # inspect finds a function's source through its module
    exec(compile(source, file, "exec"), module.__dict__)
    return module.__dict__[name]


def launch_text(request: dict[str, Any]) -> dict[str, Any]:
    """A kernel given as text, on the arguments that came with it; they go back as it left them."""
    kernel = kernel_from(request["source"], request["name"])
    sent, back = io.BytesIO(request["arguments"]), io.BytesIO()
    arguments, constants = torch.load(sent, map_location="cpu", weights_only=False)
    with Recorder(request["keep"]) as recorder:
        kernel[request["grid"]](*arguments, **constants)
    torch.save([*arguments, *constants.values()], back)
    return {"launches": recorder.launches, "arguments": back.getvalue()}


def launch_ours(request: dict[str, Any]) -> dict[str, Any]:
    """A kernel of the package through its host function, on data of `trace.example`."""
    module = importlib.import_module(f"rmsnorm_edu.kernels.{request['module']}")
    recorder = Recorder(request["keep"], request["names"])
    with replaced(module, request["constants"]), recorder:
        getattr(module, request["function"])(*request["args"], **request["options"])
    launched = [launch["kernel"] for launch in recorder.launches]
    if not request["constants"].keys() <= {*launched}:
        raise ValueError(f"constants for {', '.join(request['constants'])}; launched: {launched}")
    return {"launches": recorder.launches}


@contextmanager
def replaced(module: types.ModuleType, constants: dict[str, dict[str, Any]]) -> Iterator[None]:
    """The plans that `module` launches by, with other constants by the kernel's name."""

    def changed(plan: Launch) -> Launch:
        new = {**plan.constants, **constants.get(plan.kernel, {})}
        if new.keys() != plan.constants.keys():
            raise ValueError(f"{plan.kernel} has the constants {[*plan.constants]}, not {[*new]}")
        return dataclasses.replace(plan, constants=new)

    def choosing(choose: Callable[..., Launch]) -> Callable[..., Launch]:
        return lambda *args, **options: changed(choose(*args, **options))

    new: dict[str, Any] = {}
    for name, value in vars(module).items():
        if isinstance(value, Launch):
            new[name] = changed(value)
        elif getattr(value, "__annotations__", {}).get("return") is Launch:
            new[name] = choosing(value)
    with patch.multiple(module, **new):
        yield


def main() -> None:
    requests = pickle.load(sys.stdin.buffer)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a kernel prints is not the answer
    torch.set_num_threads(1)
    answers = [launch_text(r) if "source" in r else launch_ours(r) for r in requests]
    pickle.dump(answers, out)
    out.close()


if __name__ == "__main__":
    main()
