"""The paper's Table 5 in small: mean and spread of what the decoder's state is multiplied to.

Four translators that differ in the norm alone learn from the same batches in the same order; the
statistic is taken on held-out sentences, with the true words before each position.

A norm decides most of the spread by itself: after RMSNorm with weights of 1, mean² + sd² is 1 at
every position (LayerNorm: mean 0, sd 1), whatever was learned. What learning can move is the mean
under RMSNorm, all under pRMSNorm and without a norm, and the rest through the norm's weights.
"""

import math
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rmsnorm_edu import __version__
from rmsnorm_edu.experiments import data
from rmsnorm_edu.experiments.translation import (
    NORMS,
    PAD,
    Batch,
    Corpus,
    Translator,
    Vocabulary,
    loss_of,
)

POSITIONS = ("1", "2", "3", "4", "all")
PARTS = ("gates", "candidate")


PAPER: dict[str, dict[str, tuple[float, ...]]] = {  # its Table 5, at POSITIONS
    "none": {"mean": (-2.60, -1.19, -1.43, -1.53, -1.60), "sd": (7.35, 2.33, 2.61, 2.73, 3.04)},
    "layer": {"mean": (-0.43, -0.48, -0.50, -0.50, -0.51), "sd": (1.19, 1.51, 1.51, 1.51, 1.51)},
    "rms": {"mean": (-0.40, -0.60, -0.69, -0.74, -0.73), "sd": (1.27, 1.51, 1.50, 1.49, 1.50)},
}
STATISTIC = (
    "[N(h U) ; N(h Ux)] of the decoder's GRU: the 2 hidden units of the gates and the hidden units "
    "of the candidate before the reset gate, after the norm where there is one; h is the state "
    "before the position; mean and standard deviation over all units and held-out sentences with "
    "a word or the end there; all: over all positions; the true words come before each position"
)
DIFFERS = {  # what, in the paper, here
    "data": ("WMT14 English-German; newstest2013", "short sentences of a user interface; held out"),
    "size": ("embedding 512, hidden 1024", "embedding 128, hidden 256"),
    "attention": ("before the state that writes, in a second GRU", "after the one GRU's state"),
    "learning": (
        "Adam, 1e-4, hundreds of thousands of steps",
        "Adam, 1e-3, some hundreds of steps",
    ),
    "loss": ("cross-entropy with label smoothing 0.1", "cross-entropy"),
    "first values": ("normal, 0.01; square ones orthogonal", "uniform; the state's orthogonal"),
}


@dataclass(frozen=True)
class Settings:
    """What a run depends on; `limit` takes only the first pairs."""

    words: int = 2000
    embedding: int = 128
    hidden: int = 256
    batch: int = 64
    epochs: int = 6
    points: int = 12  # of the loss curve, evenly spaced
    learning_rate: float = 1e-3
    clip: float = 1.0
    seeds: tuple[int, ...] = (0, 1, 2)
    limit: int | None = None


QUICK = Settings(
    words=60, embedding=8, hidden=32, epochs=2, points=2, batch=32, seeds=(0,), limit=250
)


def measure(
    settings: Settings | None = None, folder: str | os.PathLike[str] = "checkpoints"
) -> dict[str, Any]:
    """The statistics by model and position, the losses, and the settings.

    One thread. What is trained lies under `folder` until all is done: a run that was stopped goes
    on from there when it is started again with the same settings.
    """
    settings = Settings() if settings is None else settings
    home = Path(folder) / "hidden_statistics"
    learn, held_out, sizes = _corpora(settings)
    counts = {"learned": len(learn.pairs), "held_out": len(held_out.pairs)}
    counts |= {"source_words": sizes[0], "target_words": sizes[1]}
    runs: dict[str, list[dict[str, Any]]] = {norm: [] for norm in NORMS}
    with _one_thread():
        for seed in settings.seeds:  # one of each model, then the next seed
            for norm in NORMS:
                model = _drawn(norm, sizes, settings, seed)
                file = home / f"{norm}-{seed}.pt"
                curve = train(model, learn, held_out, settings, seed, file)
                runs[norm].append(statistics(model, held_out, settings.batch) | curve)
    shutil.rmtree(home)
    found = {norm: _summary(each) for norm, each in runs.items()}
    settings_and_counts = asdict(settings) | counts
    told = {"statistic": STATISTIC, "differs": DIFFERS, "paper": PAPER}
    return {"positions": POSITIONS, "models": found, "settings": settings_and_counts} | told


def _corpora(settings: Settings) -> tuple[Corpus, Corpus, tuple[int, int]]:
    """What is learned, what is held out, and the sizes of the two vocabularies."""
    learn, rest = data.held_out(data.pairs()[: settings.limit])
    english, german = (Vocabulary(side, settings.words) for side in zip(*learn, strict=True))
    sizes = len(english), len(german)
    return Corpus(learn, english, german), Corpus(rest, english, german), sizes


def _drawn(norm: str, sizes: tuple[int, int], settings: Settings, seed: int) -> Translator:
    """The model at its start: the matrices of one seed are the same whatever the norm."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Translator(*sizes, norm, settings.embedding, settings.hidden)


def train(
    model: Translator, learn: Corpus, held_out: Corpus, settings: Settings, seed: int, file: Path
) -> dict[str, list[float]]:
    """Adam on the mean loss of a word; the loss curve: step, learned (mean since), held_out.

    After each point of the curve the run is stored in `file`; from there it goes on.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.learning_rate)
    curve: dict[str, list[float]] = {"step": [], "learned": [], "held_out": []}
    epochs = [learn.epoch(settings.batch, (seed, e)) for e in range(settings.epochs)]
    batches = [rows for epoch in epochs for rows in epoch]
    stamp = repr((settings, __version__, torch.__version__))
    begin = _resume(file, model, optimizer, curve, stamp)
    for start, stop in _stretches(len(batches), settings.points):
        if start < begin:
            continue
        losses = [
            _step(model, optimizer, learn.batch(rows), settings.clip)
            for rows in batches[start:stop]
        ]
        curve["step"].append(stop)
        curve["learned"].append(math.fsum(losses) / len(losses))
        curve["held_out"].append(mean_loss(model, held_out, settings.batch))
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        _store(file, state | {"curve": curve, "stamp": stamp})
    return curve


def _stretches(steps: int, points: int) -> list[tuple[int, int]]:
    ends = [steps * point // points for point in range(points + 1)]
    return list(pairwise(ends))


def _step(model: Translator, optimizer: torch.optim.Optimizer, batch: Batch, clip: float) -> float:
    """One step of the optimizer; the mean loss of a word before it."""
    loss = loss_of(model, batch) / (batch.target != PAD).sum()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    return float(loss.detach())


def _resume(
    file: Path,
    model: Translator,
    optimizer: torch.optim.Optimizer,
    curve: dict[str, list[float]],
    stamp: str,
) -> int:
    """Load the run stored in `file`, if it is of the same settings; the steps that it has done."""
    if not file.exists():
        return 0
    stored = torch.load(file, weights_only=True)
    if stored["stamp"] != stamp:
        return 0
    model.load_state_dict(stored["model"])
    optimizer.load_state_dict(stored["optimizer"])
    curve.update(stored["curve"])
    return int(curve["step"][-1])


def _store(file: Path, state: dict[str, Any]) -> None:
    """Write the file whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(".part")
    torch.save(state, temporary)
    os.replace(temporary, file)


def mean_loss(model: Translator, corpus: Corpus, size: int) -> float:
    """The mean cross-entropy of a word of the corpus, in nats."""
    batches = _in_order(corpus, size)
    with torch.no_grad():
        total = math.fsum(float(loss_of(model, batch)) for batch in batches)
    return total / sum(int((batch.target != PAD).sum()) for batch in batches)


def statistics(model: Translator, corpus: Corpus, size: int) -> dict[str, Any]:
    """Mean and standard deviation of `Translator.hidden_to_hidden` by target position.

    Over all units and all sentences that have a word (or the end) at that position; "all": over
    all positions. Also for the gates' and the candidate's share alone.
    """
    hidden = model.decoder.hidden_size
    sums = {part: np.zeros((3, len(POSITIONS))) for part in PARTS}
    for batch in _in_order(corpus, size):
        with torch.no_grad():
            mapped = model.hidden_to_hidden(model(batch)[1]).double()
        there = batch.target != PAD
        for part, units in zip(PARTS, torch.split(mapped, [2 * hidden, hidden], -1), strict=True):
            sums[part] += _sums(units, there)
    found = _mean_and_sd(sums["gates"] + sums["candidate"])
    return found | {part: _mean_and_sd(each) for part, each in sums.items()}


def _sums(units: Tensor, there: Tensor) -> np.ndarray:
    """Number, sum and sum of squares at each of POSITIONS, of units (T, B, n) where `there`."""
    counted = there.double() * units.shape[-1]
    powers = [(units**power).sum(-1) * there for power in (1, 2)]
    by_step = torch.stack([counted, *powers]).sum(-1)
    first = torch.nn.functional.pad(by_step, (0, 4))[:, :4]
    return torch.cat([first, by_step.sum(-1, keepdim=True)], -1).numpy()


def _mean_and_sd(sums: np.ndarray) -> dict[str, list[float]]:
    number, total, squares = sums
    mean = total / number
    sd = np.sqrt(squares / number - mean**2)
    return {"mean": mean.tolist(), "sd": sd.tolist()}


def _in_order(corpus: Corpus, size: int) -> list[Batch]:
    rows = sorted(range(len(corpus.pairs)), key=lambda i: len(corpus.pairs[i][1]))
    return [corpus.batch(rows[i : i + size]) for i in range(0, len(rows), size)]


def _summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The means over the seeds, four digits after the point, and each seed's own figures."""
    by_seed = {name: [_rounded(run[name]) for run in runs] for name in ("mean", "sd")}
    by_seed["held_out_loss"] = [_rounded(run["held_out"][-1]) for run in runs]
    return {
        **_mean_of(runs, ("mean", "sd")),
        **{part: _mean_of([run[part] for run in runs], ("mean", "sd")) for part in PARTS},
        "held_out_loss": _rounded(np.mean(by_seed["held_out_loss"])),
        "loss_curve": {"step": runs[0]["step"], **_mean_of(runs, ("learned", "held_out"))},
        "by_seed": by_seed,
    }


def _mean_of(runs: list[dict[str, Any]], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: _rounded(np.mean([run[name] for run in runs], axis=0)) for name in names}


def _rounded(values: Any) -> Any:
    return np.round(values, 4).tolist()


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
