r"""A law's LaTeX as HTML, for figures: the book's equations and theirs have one source."""

import re

_RULES = [
    (r"\\(textstyle|big)(?![a-z])|\\;", ""),
    (r"\\,", "\u2009"),
    (r"\\mathrm\{(\w+)\}", r"\1"),
    (r"\\mathbf (\w)", r"<b>\1</b>"),
    (r"\\tfrac(\w)(\w) ?", r"(\1/\2) "),
    (r"\^\\top", "ᵀ"),
    (r"_\{([^{}]*)\}|_(\w)", r"<sub>\1\2</sub>"),
    (r"\^\{([^{}]*)\}|\^(\w)", r"<sup>\1\2</sup>"),
    (r"\\sqrt\{([^{}]*)\}", r"√(\1)"),
    (r"\\frac\{([^{} ]*)\}\{([^{}]*)\}", r"\1 / \2"),
    (r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"(\1) / \2"),
]
_SIGNS = {
    r"\Rightarrow": "⇒",
    r"\delta": "δ",
    r"\gamma": "γ",
    r"\hat W": "Ŵ",
    r"\lVert": "‖",
    r"\mu": "μ",
    r"\neq": "≠",
    r"\le": "≤",
    r"\prime": "′",
    r"\quad": "\u2003",
    r"\rVert": "‖",
    r"\sigma": "σ",
    r"\sum": "Σ",
    "'": "′",
    "-": "−",
}


def html_math(latex: str) -> str:
    r"""`latex` in Unicode with <sub>, <sup>, <b>; ValueError for a command that it does not know.

    >>> html_math(r"r_k(\delta a)^2 = \tfrac1n \textstyle\sum_j a_j^2")
    'r<sub>k</sub>(δ a)<sup>2</sup> = (1/n) Σ<sub>j</sub> a<sub>j</sub><sup>2</sup>'
    """
    text = latex.replace("&", "&amp;").replace("<", "&lt;")
    for pattern, replacement in _RULES:
        text = re.sub(pattern, replacement, text)
    for command, sign in _SIGNS.items():
        text = text.replace(command, sign)
    if re.search(r"[\\{}^_]", text):
        raise ValueError(f"html_math has no rule for {latex!r}: it is left with {text!r}")
    return re.sub(r" +", " ", text)
