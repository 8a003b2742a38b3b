"""Why each cell of the invariance table comes out as it does: a sentence and a law, as data."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Law:
    """`sentence` in plain Unicode, for a figure; `latex`, for a page."""

    sentence: str
    latex: str


_ORDER = (
    "weight_matrix_rescaling",
    "weight_matrix_recentering",
    "weight_vector_rescaling",
    "dataset_rescaling",
    "dataset_recentering",
    "single_case_rescaling",
    "rotation",
)


def _scaled(unicode: str, latex: str) -> Law:
    """The law of a size that a factor goes through: what is left of the factor is its sign."""
    return Law(
        f"{unicode}, so y′ = sign(δ) y",
        rf"{latex} \Rightarrow y' = \operatorname{{sign}}(\delta)\,y",
    )


_OWN_SPREAD = _scaled("σᵢ(δaᵢ) = |δ| σᵢ(aᵢ)", r"\sigma_i(\delta a_i) = |\delta|\,\sigma_i(a_i)")
_LENGTH = _scaled("‖δw‖ = |δ| ‖w‖", r"\lVert\delta w\rVert = |\delta|\,\lVert w\rVert")
_SPREAD = _scaled("σ(δa) = |δ| σ(a)", r"\sigma(\delta a) = |\delta|\,\sigma(a)")
_ROOT = _scaled("RMS(δa) = |δ| RMS(a)", r"\mathrm{RMS}(\delta a) = |\delta|\,\mathrm{RMS}(a)")
_FIRST = _scaled(
    "RMSₖ(δa) = |δ| RMSₖ(a)", r"\mathrm{RMS}_k(\delta a) = |\delta|\,\mathrm{RMS}_k(a)"
)
_ELSEWHERE = Law("a′ = a + c W1, another direction", r"a' = a + c\,W\mathbf 1")

_LAWS = {  # a = Wx, one row a case
    "batch_norm": (
        _OWN_SPREAD,
        Law("γᵀx differs from case to case", r"a'_i = a_i + \gamma^\top x"),
        _OWN_SPREAD,
        _OWN_SPREAD,
        Law(
            "every aᵢ moves by c (W1)ᵢ, its mean too",
            r"a_i' - \mu_i' = a_i + c\,(W\mathbf 1)_i - \mu_i - c\,(W\mathbf 1)_i = a_i - \mu_i",
        ),
        Law("one case moves the μ and σ of all", r"\mu_i' = \mu_i + (\delta - 1)\,a_i^{(1)}/m"),
        Law("Q mixes outputs of different σ", r"\sigma_i(Qa) \ne \sigma_i(a)"),
    ),
    "weight_norm": (
        _LENGTH,
        Law("w + cγ has another direction", r"(w + c\gamma) \nparallel w"),
        _LENGTH,
        Law("y is linear in x: y′ = δy", r"y' = \delta y"),
        Law("y is linear in x: y′ = y + c Ŵ1", r"y' = y + c\,\hat W\mathbf 1"),
        Law("y is linear in x: y₁′ = δy₁", r"y'^{(1)} = \delta\,y^{(1)}"),
        Law("‖(QW)ᵢ‖ ≠ ‖Wᵢ‖", r"\lVert(QW)_i\rVert \ne \lVert W_i\rVert"),
    ),
    "layer_norm": (
        _SPREAD,
        Law("a′ − mean(a′) = a − mean(a)", r"a' - \mu(a')\mathbf 1 = a - \mu(a)\mathbf 1"),
        Law("a factor for one aᵢ moves the μ and σ of its case", r"\mu' = \mu + (\delta-1)\,a_1/n"),
        _SPREAD,
        Law("a′ = a + c W1, and W1 is no constant", r"a' = a + c\,W\mathbf 1"),
        _SPREAD,
        Law("mean(Qa) ≠ mean(a)", r"\mu(Qa) \ne \mu(a)\quad(Q\mathbf 1 \ne \mathbf 1)"),
    ),
    "rms_norm": (
        _ROOT,
        Law(
            "RMS(a + s)² = RMS(a)² + 2s mean(a) + s²",
            r"\mathrm{RMS}(a+s)^2 = \mathrm{RMS}(a)^2 + 2s\,\mu(a) + s^2",
        ),
        Law(
            "RMS(a′)² = RMS(a)² + (δ² − 1) a₁² ∕ n",
            r"\mathrm{RMS}(a')^2 = \mathrm{RMS}(a)^2 + (\delta^2-1)\,a_1^2/n",
        ),
        _ROOT,
        _ELSEWHERE,
        _ROOT,
        Law(
            "RMS(Qa) = RMS(a), so y′ = Qy",
            r"\mathrm{RMS}(Qa) = \mathrm{RMS}(a) \Rightarrow y' = Qy",
        ),
    ),
    "partial_rms_norm": (
        _FIRST,
        Law(
            "RMSₖ(a + s)² = RMSₖ(a)² + 2s meanₖ(a) + s²",
            r"\mathrm{RMS}_k(a+s)^2 = \mathrm{RMS}_k(a)^2 + 2s\,\mu_k(a) + s^2",
        ),
        Law(
            "RMSₖ(a′)² = RMSₖ(a)² + (δ² − 1) a₁² ∕ k",
            r"\mathrm{RMS}_k(a')^2 = \mathrm{RMS}_k(a)^2 + (\delta^2-1)\,a_1^2/k",
        ),
        _FIRST,
        _ELSEWHERE,
        _FIRST,
        Law("Q mixes the first k with the rest", r"\mathrm{RMS}_k(Qa) \ne \mathrm{RMS}_k(a)"),
    ),
}
LAWS: dict[tuple[str, str], Law] = {
    (method, transformation): law
    for method, laws in _LAWS.items()
    for transformation, law in zip(_ORDER, laws, strict=True)
}
