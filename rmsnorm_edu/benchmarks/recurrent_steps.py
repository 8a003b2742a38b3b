"""The time of one step of a recurrence, forward and backward, without a norm and with each.

Eager is compared with eager and compiled with compiled. torch has a fused LayerNorm for the CPU and
no fused RMSNorm: so the LayerNorm beside our RMSNorm is written in the same plain operations, and
torch's fused one is a line of its own. `torch` is torch's own cell, which takes no norm inside.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from rmsnorm_edu.nn import NormGRU, NormLSTM
from rmsnorm_edu.nn._cell import Cell

P = 0.0625
EAGER = ("none", "layer", "layer_fused", "rms", "partial", "torch")
COMPILED = ("none", "layer", "rms", "partial")
CELLS: dict[str, type[Cell]] = {"GRU": NormGRU, "LSTM": NormLSTM}
SEED = 0


def measure(
    hidden: tuple[int, ...] = (128, 1024),
    batch: int = 16,
    steps: int = 8,
    repeats: int = 11,
    compiled: bool = True,
) -> dict[str, Any]:
    """Milliseconds for each step, forward and backward, by cell, hidden size and norm.

    Median and quartiles of `repeats` on one thread; the norms take turns, so that a slow moment of
    the machine meets all of them. x (steps, batch, hidden) in float32; the input's projection is
    counted too.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        cells = {
            cell: {str(n): _one_size(cell, n, batch, steps, repeats, compiled) for n in hidden}
            for cell in CELLS
        }
    finally:
        torch.set_num_threads(threads)
    settings = {"batch": batch, "steps": steps, "repeats": repeats, "p": P, "dtype": "float32"}
    return settings | {"threads": 1, "seed": SEED, "cells": cells}


def _one_size(
    cell: str, size: int, batch: int, steps: int, repeats: int, compiled: bool
) -> dict[str, Any]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        x = torch.randn(steps, batch, size)
        ways = {"eager": {name: made(cell, name, size) for name in EAGER}}
        if compiled:
            ways["compiled"] = {name: made(cell, name, size, compiled=True) for name in COMPILED}
    timed = {way: _timed(layers, x, repeats) for way, layers in ways.items()}
    torch.compiler.reset()
    return timed


def made(cell: str, name: str, size: int, *, compiled: bool = False) -> torch.nn.Module:
    """The layer that a line of the table times."""
    if name == "torch":
        return torch.nn.GRU(size, size) if cell == "GRU" else torch.nn.LSTM(size, size)
    norm = {"none": None, "layer": "layer", "layer_fused": "layer"}.get(name, "rms")
    layer = CELLS[cell](size, size, norm, p=P if name == "partial" else None, compiled=compiled)
    if name == "layer_fused":
        for place, inner in list(layer.named_children()):
            features = sum(weight.numel() for weight in inner.parameters()) // 2
            setattr(layer, place, torch.nn.LayerNorm(features, eps=layer.eps))
    return layer


def _timed(layers: dict[str, torch.nn.Module], x: torch.Tensor, repeats: int) -> dict[str, Any]:
    runs = {name: _run_of(layer, x) for name, layer in layers.items()}
    for run in [*runs.values()] * 2:  # the first compiles, both warm the caches
        run()
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            times[name].append(1e3 * (time.perf_counter() - start) / len(x))
    return {name: _summary(each) for name, each in times.items()}


def _run_of(layer: torch.nn.Module, x: torch.Tensor) -> Callable[[], None]:
    """Forward and backward; the first state asks for its gradient, so all steps are of one kind."""
    first = torch.zeros(x.shape[1], x.shape[2], requires_grad=True)
    lstm = isinstance(layer, NormLSTM | torch.nn.LSTM)

    def run() -> None:
        layer.zero_grad()
        if isinstance(layer, torch.nn.RNNBase):
            h, _ = layer(x, (first[None], first[None]) if lstm else first[None])
        else:
            out = layer(x, None, *((first, first) if lstm else (first,)))
            h = out[0] if lstm else out
        h.sum().backward()

    return run


def _summary(times: list[float]) -> dict[str, float]:
    low, median, high = np.quantile(times, [0.25, 0.5, 0.75])
    named = {"median_ms": median, "low_ms": low, "high_ms": high}
    return {name: round(float(value), 4) for name, value in named.items()}
