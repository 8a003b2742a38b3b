"""The paper's Table 5 in small: what is trained, what is measured, and that it can be resumed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from rmsnorm_edu import recorded
from rmsnorm_edu.benchmarks import measure_of
from rmsnorm_edu.experiments import hidden_statistics as hs
from rmsnorm_edu.experiments import translation

QUICK = hs.QUICK


@pytest.fixture(scope="module")
def corpora() -> tuple:
    return hs._corpora(QUICK)


@pytest.fixture(autouse=True)
def _one_thread():
    with hs._one_thread():
        yield


def test_the_record_of_a_quick_run(tmp_path: Path) -> None:
    threads, generator = torch.get_num_threads(), torch.random.get_rng_state()
    data = measure_of("hidden_statistics")(QUICK, tmp_path)
    assert data["positions"] == ("1", "2", "3", "4", "all")
    assert list(data["models"]) == ["none", "layer", "rms", "partial"]
    assert data["settings"]["learned"] + data["settings"]["held_out"] == QUICK.limit
    for found in data["models"].values():
        for table in (found, found["gates"], found["candidate"]):
            assert len(table["mean"]) == len(table["sd"]) == 5
            assert min(table["sd"]) > 0
        curve = found["loss_curve"]
        assert curve["step"][-1] == QUICK.epochs * -(-data["settings"]["learned"] // QUICK.batch)
        assert curve["learned"][0] > curve["learned"][1]  # it learns
        assert curve["held_out"][0] > curve["held_out"][1] == found["held_out_loss"]
    recorded.write("x", data, command="a test", folder=tmp_path)
    assert not (tmp_path / "hidden_statistics").exists()
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.random.get_rng_state(), generator)


def test_a_stopped_run_goes_on_to_the_same_bits(corpora, tmp_path: Path, monkeypatch) -> None:
    learn, held_out, sizes = corpora

    def run(file: Path) -> tuple:
        model = hs._drawn("rms", sizes, QUICK, seed=0)
        return model, hs.train(model, learn, held_out, QUICK, 0, file)

    whole, curve = run(tmp_path / "whole.pt")
    steps = []
    step = hs._step

    def stopping(*arguments) -> float:
        if len(steps) == curve["step"][0] + 2:  # two steps after the first point
            raise KeyboardInterrupt
        steps.append(arguments)
        return step(*arguments)

    monkeypatch.setattr(hs, "_step", stopping)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "stopped.pt")
    monkeypatch.setattr(hs, "_step", step)
    resumed, again = run(tmp_path / "stopped.pt")
    assert again == curve
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name
    assert not list(tmp_path.glob("*.part"))


def test_a_run_of_other_settings_is_not_taken_up(corpora, tmp_path: Path) -> None:
    learn, held_out, sizes = corpora
    file, short = tmp_path / "run.pt", replace(QUICK, epochs=1, points=1)
    for rate in (1e-3, 2e-3):
        model = hs._drawn("none", sizes, short, seed=1)
        settings = replace(short, learning_rate=rate)
        curve = hs.train(model, learn, held_out, settings, 1, file)
        assert torch.load(file, weights_only=True)["curve"] == curve
        assert f"learning_rate={rate}" in torch.load(file, weights_only=True)["stamp"]


@pytest.mark.parametrize("norm", translation.NORMS)
def test_the_statistic_is_that_of_the_decoders_own_steps(norm: str, corpora) -> None:
    """Against the products collected in the decoder's loop, word by word, in float64."""
    _, held_out, sizes = corpora
    model = hs._drawn(norm, sizes, QUICK, seed=2).double()
    model.encode = _in_float64(model)
    found = hs.statistics(model, held_out, size=7)
    seen: list[list[np.ndarray]] = [[] for _ in range(5)]
    for source, target in held_out.pairs:
        _, h = model.encode(torch.tensor(source)[:, None])
        for place, word in enumerate([translation.END, *target[:-1]]):
            gru = model.decoder
            gates = gru.norm_hh_gates(h @ gru.weight_hh_gates)
            candidate = gru.norm_hh_candidate(h @ gru.weight_hh_candidate)
            mapped = torch.cat([gates, candidate], -1).detach().numpy().ravel()
            for row in {min(place, 4), 4}:
                seen[row].append(mapped)
            projected = gru.project(model.target(torch.tensor([word])))
            (h,) = gru.step(projected, (h,))
    n = 2 * QUICK.hidden
    for table, columns in (
        (found, slice(None)),
        (found["gates"], slice(n)),
        (found["candidate"], slice(n, None)),
    ):
        values = [np.array(rows)[:, columns] for rows in seen]
        np.testing.assert_allclose(table["mean"], [v.mean() for v in values], atol=1e-12)
        np.testing.assert_allclose(table["sd"], [v.std() for v in values], rtol=1e-12)


def _in_float64(model: translation.Translator):
    """The encoder with its mask in float64."""

    def encode(source: torch.Tensor):
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            return type(model).encode(model, source)
        finally:
            torch.set_default_dtype(before)

    return encode


def test_the_models_start_with_the_same_matrices(corpora) -> None:
    starts = {norm: hs._drawn(norm, corpora[2], QUICK, 3).state_dict() for norm in hs.NORMS}
    for name, matrix in starts["none"].items():
        for norm, start in starts.items():
            assert torch.equal(matrix, start[name]), (norm, name)


def test_partial_takes_fewer_features_in_every_norm(corpora) -> None:
    model = hs._drawn("partial", corpora[2], QUICK, 0)
    norms = [inner for inner in model.modules() if hasattr(inner, "k")]
    assert len(norms) == 3 * 4 + 2  # the three GRUs', the first state's and the readout's
    assert all(norm.k <= 4 for norm in norms)  # of 64 at most


def test_an_epoch_has_every_pair_once_and_one_length_a_batch(corpora) -> None:
    learn, _, _ = corpora
    epoch = learn.epoch(16, (0, 1))
    assert sorted(row for rows in epoch for row in rows) == list(range(len(learn.pairs)))
    assert epoch == learn.epoch(16, (0, 1)) != learn.epoch(16, (0, 2))
    spread = [np.ptp([len(learn.pairs[row][1]) for row in rows]) for rows in epoch]
    assert np.median(spread) <= 1


@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_a_norm_decides_the_spread_by_itself(norm: str, corpora) -> None:
    """Before any training, for weights of 1: mean² + sd² is 1, short of eps; LayerNorm: mean 0."""
    found = hs.statistics(hs._drawn(norm, corpora[2], QUICK, 5), corpora[1], 32)
    mean, sd = np.array(found["mean"]), np.array(found["sd"])
    total = mean**2 + sd**2  # the mean of ms / (ms + eps), which is 0.99 for ms = 99 eps
    assert (total < 1 + 1e-6).all()
    assert (total > 0.99).all()
    assert (np.abs(mean).max() < 1e-6) == (norm == "layer")


def test_padding_changes_nothing(corpora) -> None:
    """A sentence has the same loss alone and beside a longer one, but for rounding."""
    learn, _, sizes = corpora
    model = hs._drawn("rms", sizes, QUICK, 4)
    order = sorted(range(len(learn.pairs)), key=lambda i: sum(map(len, learn.pairs[i])))
    short, long = order[0], order[-1]
    with torch.no_grad():
        alone = [float(translation.loss_of(model, learn.batch([i]))) for i in (short, long)]
        both = float(translation.loss_of(model, learn.batch([short, long])))
    assert both == pytest.approx(sum(alone), rel=1e-5)


def test_words_unknown_and_end() -> None:
    vocabulary = translation.Vocabulary(["Set the time.", "set the Gerät"], 2)
    assert vocabulary.words == ["<pad>", "<unk>", "</s>", "set", "the"]
    assert vocabulary.encode("Set THE clock") == [3, 4, translation.UNKNOWN, translation.END]
