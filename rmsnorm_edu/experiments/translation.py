"""A small English-German translator whose recurrences and layers have norms inside.

After RNNSearch as the paper trains it (its section 6.1), and smaller: a bidirectional GRU reads the
source, a GRU writes the target and looks back at the source by attention.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from rmsnorm_edu.experiments.data import Pairs
from rmsnorm_edu.nn import NormGRU, RMSNorm

PAD, UNKNOWN, END = 0, 1, 2  # END stands before the first word of a target, too
NORMS: dict[str, tuple[str | None, float | None]] = {  # model → what NormGRU takes: norm, p
    "none": (None, None),
    "layer": ("layer", None),
    "rms": ("rms", None),
    "partial": ("rms", 0.0625),
}


class Vocabulary:
    """The `size` most frequent words and signs of some sentences, as numbers from 3 up."""

    def __init__(self, sentences: Iterable[str], size: int) -> None:
        counts = Counter(word for sentence in sentences for word in words(sentence))
        self.words = ["<pad>", "<unk>", "</s>", *(word for word, _ in counts.most_common(size))]
        self.number = {word: number for number, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, sentence: str) -> list[int]:
        """The numbers of its words and of the end; 1 for a word that is not among them."""
        return [*(self.number.get(word, UNKNOWN) for word in words(sentence)), END]


def words(sentence: str) -> list[str]:
    """Words and punctuation signs, in small letters."""
    return re.findall(r"\w+|[^\w\s]", sentence.lower())


class Batch(NamedTuple):
    """Sentences as columns: source (S, B) and target (T, B), filled up with 0."""

    source: Tensor
    target: Tensor


class Corpus:
    """Encoded pairs, and the batches of any step of a training."""

    def __init__(self, pairs: Pairs, source: Vocabulary, target: Vocabulary) -> None:
        self.pairs = [(source.encode(s), target.encode(t)) for s, t in pairs]

    def batch(self, rows: Sequence[int]) -> Batch:
        """The pairs with these numbers."""
        return Batch(*(_filled(side) for side in zip(*(self.pairs[i] for i in rows), strict=True)))

    def epoch(self, size: int, seed: Sequence[int]) -> list[list[int]]:
        """All pairs once, in batches of `size` of about one length, in an order that `seed` draws.

        The same seed gives the same order, so that a training can go on where it stopped.
        """
        rng = np.random.default_rng(seed)
        tie = rng.random(len(self.pairs))
        lengths = [(len(t), len(s)) for s, t in self.pairs]
        order = sorted(range(len(tie)), key=lambda i: (*lengths[i], tie[i]))
        batches = [order[i : i + size] for i in range(0, len(order), size)]
        return [batches[i] for i in rng.permutation(len(batches))]


def _filled(sentences: Sequence[list[int]]) -> Tensor:
    columns = [torch.tensor(sentence) for sentence in sentences]
    return torch.nn.utils.rnn.pad_sequence(columns, padding_value=PAD)


class Translator(torch.nn.Module):
    """The model; its `decoder` is the GRU whose state the paper's Table 5 looks at.

    With N the norm of the model (none, LayerNorm, RMSNorm, RMSNorm from the first p)::

        annotations = [GRU→(E x) ; GRU←(E x)]             half of `hidden` each
        h₀          = tanh(N(W mean(annotations) + b))    the mean over the source's words
        h_j         = GRU(E y_{j−1}, h_{j−1})
        context_j   = Σ_i softmax_i(annotation_i · A h_j) annotation_i
        logits_j    = V tanh(N(R [h_j ; context_j ; E y_{j−1}] + c)) + d

    and N also inside the three GRUs, where the 2019 code has it. eps is 1e-5 everywhere.
    """

    def __init__(self, source: int, target: int, norm: str, embedding: int, hidden: int) -> None:
        super().__init__()
        kind, p = NORMS[norm]
        self.source = torch.nn.Embedding(source, embedding, padding_idx=PAD)
        self.target = torch.nn.Embedding(target, embedding, padding_idx=PAD)
        self.onward = NormGRU(embedding, hidden // 2, kind, p=p)
        self.backward_ = NormGRU(embedding, hidden // 2, kind, p=p)
        self.first = _layer(hidden, hidden, kind, p)
        self.decoder = NormGRU(embedding, hidden, kind, p=p)
        self.attention = torch.nn.Linear(hidden, hidden, bias=False)
        self.readout = _layer(2 * hidden + embedding, embedding, kind, p)
        self.logits = torch.nn.Linear(embedding, target)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The logits of every target word (T, B, words), and the states before it (T, B, hidden).

        The words before it are the true ones, not the model's own.
        """
        annotations, first = self.encode(batch.source)
        shifted = torch.cat([torch.full_like(batch.target[:1], END), batch.target[:-1]])
        y = self.target(shifted)
        states = self.decoder(y, h0=first)
        score = torch.einsum("tbh,sbh->bts", self.attention(states), annotations)
        score = score.masked_fill((batch.source == PAD).T[:, None], -torch.inf)
        context = torch.einsum("bts,sbh->tbh", score.softmax(-1), annotations)
        logits = self.logits(self.readout(torch.cat([states, context, y], -1)))
        return logits, torch.cat([first[None], states[:-1]])

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """The annotations (S, B, hidden) and the decoder's first state (B, hidden)."""
        x, mask = self.source(source), (source != PAD).float()
        from_left = self.onward(x, mask)
        from_right = self.backward_(x.flip(0), mask.flip(0)).flip(0)
        annotations = torch.cat([from_left, from_right], -1)
        mean = (annotations * mask[..., None]).sum(0) / mask.sum(0)[:, None]
        return annotations, self.first(mean)

    def hidden_to_hidden(self, states: Tensor) -> Tensor:
        """What the decoder adds to the input's share: [N(h U) ; N(h Uₓ)], (…, 3·hidden).

        The first 2·hidden are those of the gates, the last those of the candidate before the
        reset gate meets them. Without a norm: h U and h Uₓ themselves.
        """
        gru = self.decoder
        gates = gru.norm_hh_gates(states @ gru.weight_hh_gates)
        return torch.cat([gates, gru.norm_hh_candidate(states @ gru.weight_hh_candidate)], -1)


def loss_of(model: Translator, batch: Batch) -> Tensor:
    """The sum of the cross-entropies, in nats, over the target's words and ends."""
    logits, _ = model(batch)
    flat, target = logits.flatten(0, 1), batch.target.flatten()
    return torch.nn.functional.cross_entropy(flat, target, ignore_index=PAD, reduction="sum")


def _layer(inputs: int, outputs: int, kind: str | None, p: float | None) -> torch.nn.Module:
    """tanh(N(W x + b))."""
    norms: dict[str | None, list[torch.nn.Module]] = {
        None: [],
        "layer": [torch.nn.LayerNorm(outputs, eps=1e-5)],
        "rms": [RMSNorm(outputs, eps=1e-5, p=p)],
    }
    return torch.nn.Sequential(torch.nn.Linear(inputs, outputs), *norms[kind], torch.nn.Tanh())
