"""The law behind each cell of the invariance table: why an output stays, or why it moves."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Law:
    """One short sentence, and the equation that it reads aloud (LaTeX, no delimiters).

    In the equations a = Wx; μ and σ are mean and spread, over the features or, with an index i,
    over the T examples; r_k is the RMS of the first k features.
    """

    sentence: str
    latex: str


_RMS_SCALES = Law(
    "The RMS grows with |δ|, so δ cancels and its sign stays.",
    r"\mathrm{RMS}(\delta a) = |\delta|\,\mathrm{RMS}(a)",
)
_FIRST_SCALES = Law(
    "The RMS of the first k features grows with |δ|, so δ cancels and its sign stays.",
    r"r_k(\delta a) = |\delta|\,r_k(a)",
)
_SPREAD_SCALES = Law(
    "Mean and spread grow with δ and |δ|, so δ cancels and its sign stays.",
    r"\mu(\delta a) = \delta\,\mu(a),\quad \sigma(\delta a) = |\delta|\,\sigma(a)",
)
_FEATURE_SCALES = Law(
    "Each feature has its own mean and spread over the batch: a factor leaves only its sign.",
    r"\mu_i(\delta_i a_i) = \delta_i\,\mu_i(a_i),\quad"
    r" \sigma_i(\delta_i a_i) = |\delta_i|\,\sigma_i(a_i)",
)
_LENGTH_SCALES = Law(
    "Each row of W is divided by its own length: a factor leaves only its sign.",
    r"\lVert \delta_i w_i \rVert = |\delta_i|\,\lVert w_i \rVert",
)
_LINEAR = Law(
    "WeightNorm never looks at the data: the output scales as the input does.",
    r"\hat W(\delta x) = \delta\,\hat W x",
)
_SHIFTED_UNEVENLY = Law(
    "Each feature moves by its own amount, c times the sum of its weights: the norm feels it.",
    r"W(x + c\mathbf 1) = Wx + c\,W\mathbf 1",
)
_OTHER_DIRECTION = Law(
    "The vector is shifted to another direction, and RMSNorm keeps directions.",
    r"\mathrm{RMS}(a + s\mathbf 1)^2 = \mathrm{RMS}(a)^2 + 2 s\,\mu(a) + s^2,"
    r"\quad s = c\,\gamma^\top x",
)
_FIRST_OTHER_DIRECTION = Law(
    "The shift changes the numerator and the root, but not by one factor.",
    r"r_k(a + s\mathbf 1)^2 = r_k(a)^2 + 2 s\,\mu_k(a) + s^2,\quad s = c\,\gamma^\top x",
)
_FACTORS_STAY = Law(
    "The features share one root: it mixes their factors, and each keeps its own above.",
    r"y_i' = \delta_i a_i \big/ \sqrt{\tfrac1n \textstyle\sum_j \delta_j^2 a_j^2}",
)
_FACTORS_STAY_PARTIAL = Law(
    "All features share the root of the first k: each keeps its own factor above.",
    r"y_i' = \delta_i a_i \big/ \sqrt{\tfrac1k \textstyle\sum_{j \le k} \delta_j^2 a_j^2}",
)

LAWS: dict[tuple[str, str], Law] = {
    ("batch_norm", "weight_matrix_rescaling"): _FEATURE_SCALES,
    ("batch_norm", "weight_matrix_recentering"): Law(
        "Each example shifts by its own amount: no feature's mean over the batch removes that.",
        r"a_i^{(t)\prime} = a_i^{(t)} + c\,\gamma^\top x^{(t)}",
    ),
    ("batch_norm", "weight_vector_rescaling"): _FEATURE_SCALES,
    ("batch_norm", "dataset_rescaling"): _FEATURE_SCALES,
    ("batch_norm", "dataset_recentering"): Law(
        "A feature moves by one amount in all examples, and its mean over the batch with it.",
        r"a_i' - \mu_i(a_i') = a_i - \mu_i(a_i),\quad a_i' = a_i + c\,(W\mathbf 1)_i",
    ),
    ("batch_norm", "single_case_rescaling"): Law(
        "One example moves the mean and the spread that all examples share.",
        r"\mu_i(a_i') = \mu_i(a_i) + \tfrac1T(\delta - 1)\,a_i^{(1)}",
    ),
    ("batch_norm", "rotation"): Law(
        "The rotation mixes the features, and their spreads over the batch change.",
        r"\sigma_i\big((Qa)_i\big) \neq \sigma_i(a_i)",
    ),
    ("weight_norm", "weight_matrix_rescaling"): _LENGTH_SCALES,
    ("weight_norm", "weight_matrix_recentering"): Law(
        "Each row of W gets another direction.",
        r"\frac{w_i + c\gamma}{\lVert w_i + c\gamma \rVert}"
        r" \neq \frac{w_i}{\lVert w_i \rVert}",
    ),
    ("weight_norm", "weight_vector_rescaling"): _LENGTH_SCALES,
    ("weight_norm", "dataset_rescaling"): _LINEAR,
    ("weight_norm", "dataset_recentering"): Law(
        "WeightNorm never looks at the data: the output shifts as the input does.",
        r"\hat W(x + c\mathbf 1) = \hat W x + c\,\hat W\mathbf 1",
    ),
    ("weight_norm", "single_case_rescaling"): _LINEAR,
    ("weight_norm", "rotation"): Law(
        "The rotation mixes the rows of W, and their lengths change.",
        r"\lVert (QW)_i \rVert \neq \lVert w_i \rVert",
    ),
    ("layer_norm", "weight_matrix_rescaling"): _SPREAD_SCALES,
    ("layer_norm", "weight_matrix_recentering"): Law(
        "All features of an example move by one number, which is what the mean removes.",
        r"a' - \mu(a')\mathbf 1 = a - \mu(a)\mathbf 1,\quad a' = a + c\,(\gamma^\top x)\mathbf 1",
    ),
    ("layer_norm", "weight_vector_rescaling"): Law(
        "The features share one mean and one spread, which mix their factors.",
        r"\sigma(a')^2 = \tfrac1n \textstyle\sum_j \big(\delta_j a_j - \mu(a')\big)^2",
    ),
    ("layer_norm", "dataset_rescaling"): _SPREAD_SCALES,
    ("layer_norm", "dataset_recentering"): _SHIFTED_UNEVENLY,
    ("layer_norm", "single_case_rescaling"): _SPREAD_SCALES,
    ("layer_norm", "rotation"): Law(
        "The mean is the part along the vector of ones, and the rotation turns that away.",
        r"\mu(Qa) \neq \mu(a)",
    ),
    ("rms_norm", "weight_matrix_rescaling"): _RMS_SCALES,
    ("rms_norm", "weight_matrix_recentering"): _OTHER_DIRECTION,
    ("rms_norm", "weight_vector_rescaling"): _FACTORS_STAY,
    ("rms_norm", "dataset_rescaling"): _RMS_SCALES,
    ("rms_norm", "dataset_recentering"): _SHIFTED_UNEVENLY,
    ("rms_norm", "single_case_rescaling"): _RMS_SCALES,
    ("rms_norm", "rotation"): Law(
        "A rotation keeps lengths, so the root stays and the output turns along.",
        r"\mathrm{RMS}(Qa) = \mathrm{RMS}(a) \;\Rightarrow\; y' = Qy",
    ),
    ("partial_rms_norm", "weight_matrix_rescaling"): _FIRST_SCALES,
    ("partial_rms_norm", "weight_matrix_recentering"): _FIRST_OTHER_DIRECTION,
    ("partial_rms_norm", "weight_vector_rescaling"): _FACTORS_STAY_PARTIAL,
    ("partial_rms_norm", "dataset_rescaling"): _FIRST_SCALES,
    ("partial_rms_norm", "dataset_recentering"): _SHIFTED_UNEVENLY,
    ("partial_rms_norm", "single_case_rescaling"): _FIRST_SCALES,
    ("partial_rms_norm", "rotation"): Law(
        "The rotation mixes the first k features with the rest.",
        r"r_k(Qa) \neq r_k(a)",
    ),
}
