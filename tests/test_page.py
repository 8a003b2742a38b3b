"""What pages call: values as text, powers of ten, the palette, laboratory cells."""

import ast
import subprocess
import sys

import pytest

pytest.importorskip("matplotlib")

from rmsnorm_edu import page, recorded


@pytest.fixture
def shown(monkeypatch):
    """What was displayed: (data, keyword arguments) pairs."""
    import IPython.display

    calls = []
    monkeypatch.setattr(
        IPython.display, "display", lambda data=None, **options: calls.append((data, options))
    )
    return calls


@pytest.mark.parametrize("text", ["0.0100", "25.2%", "5.7 × 10⁻⁷", "it's", "1e3"])
def test_glue_keeps_every_letter(shown, text):
    """MyST-NB evaluates what looks like Python, so that "0.0100" would become 0.01."""
    page.glue("share", text)
    [(data, options)] = shown
    assert data["text/plain"] == f"share = {text}"
    assert ast.literal_eval(data["application/papermill.record/text/plain"]) == text
    assert options["metadata"]["scrapbook"]["name"] == "share"


def test_glue_refuses_a_number():
    with pytest.raises(TypeError, match=r"got 0\.01 of type float; format it"):
        page.glue("share", 0.01)


def test_palette_has_the_same_meanings_in_both_modes():
    light, dark = page.palette(), page.palette("dark")
    assert light.keys() == dark.keys()
    assert light != dark
    with pytest.raises(ValueError, match=r"palette mode 'sepia'; it is one of \['dark', 'light'\]"):
        page.palette("sepia")


def luminance(colour):
    """Relative luminance of "#rrggbb" (WCAG 2.2)."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_contrast_of_the_palette_on_its_paper(mode):
    colours = page.palette(mode)
    text = [k for k in colours if k.endswith("-text") or k in ("ink", "soft")]
    marks = [
        k for k in colours if k in ("input", "none", "rms", "layer", "batch", "weight", "wrong")
    ]
    for names, least in ((text, 4.5), (marks, 3.0)):
        for name in names:
            bright, dim = sorted(
                (luminance(colours[name]), luminance(colours["paper"])), reverse=True
            )
            assert (bright + 0.05) / (dim + 0.05) >= least, name


def test_laboratory_in_the_build_draws_once_and_says_what_moves(shown, monkeypatch):
    widgets = pytest.importorskip("ipywidgets")
    monkeypatch.setattr(page, "BUILDING", True)
    drawn = []
    control = widgets.FloatSlider(0.5, min=0, max=1, description="gain")
    assert page.laboratory(lambda gain: drawn.append(gain), gain=control) is None
    assert drawn == [0.5]
    assert "*Runs in a notebook:* there you move *gain*." in shown[0][0].data


def test_provenance_shows_the_caption(shown):
    record = recorded.load("numpy_ladder")
    page.provenance(record)
    assert record.provenance["machine"] in shown[0][0].data


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_power_needs_a_finite_number(value):
    with pytest.raises(ValueError, match="give a finite number"):
        page.power(value)


WITHOUT = """
import sys
for name in {names!r}:
    sys.modules[name] = None
import rmsnorm_edu
try:
    {code}
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("missing", "code"),
    [
        ("IPython", 'rmsnorm_edu.page.glue("share", "25%")'),
        ("matplotlib", "rmsnorm_edu.page.style()"),
        ("ipywidgets", "rmsnorm_edu.page.laboratory(print)"),
        ("anywidget", "from rmsnorm_edu.explorables import Hero"),
        ("anywidget", "import rmsnorm_edu.explorables.depth"),
    ],
)
def test_a_missing_extra_says_what_to_install(missing, code):
    names = [missing, f"{missing}.display"] if missing == "IPython" else [missing]
    script = WITHOUT.format(names=names, code=code)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert 'pip install "rmsnorm_edu[widgets]"' in run.stdout, run.stdout + run.stderr
