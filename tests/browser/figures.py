"""What the tests of explorables share: pages, the numbers that they show, a drag, a clock."""

import re

import numpy as np

PAGES = {
    "hero": "book/index.html",
    "depth": "book/equation/why_normalise.html",
    "epsilons": "book/equation/numpy.html",
    "invariance_table": "book/equation/invariance.html",
    "sphere": "book/equation/layernorm_to_rmsnorm.html",
    "mutant_detective": "book/equation/testing.html",
    "kernel_stepper": "book/kernels/first_kernel.html",
}
DECIMAL = r"[-−]?\d+(?:\.\d+)?"
NUMBER = re.compile(rf"(?:{DECIMAL} × )?10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+|{DECIMAL}")
RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def number(text):
    """ "−1.05", "7.7 × 10⁻⁷" or "10⁻⁵" as a float.

    >>> number("7.7 × 10⁻⁷"), number("−1.05"), number("10⁻⁵")
    (7.7e-07, -1.05, 1e-05)
    """
    text = text.replace("−", "-")
    power = re.fullmatch(r"(?:(.+) × )?10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", text)
    if power:
        return float(f"{power[1] or 1}e{power[2].translate(RAISED)}")
    return float(text)


def numbers(text):
    return [number(found) for found in NUMBER.findall(text.replace("\N{NO-BREAK SPACE}", " "))]


def same(shown, true):
    """Equal as far as the shown digits go: two decimals, or two significant digits."""
    np.testing.assert_allclose(shown, true, rtol=0.05, atol=0.0051)
    return True


def rest(page, milliseconds=0):
    """Wait two frames, and then so long by the page's own clock.

    The figures' timers run by it too (the hidden table is 150 ms behind the hand, the address 250):
    one of 300 ms that begins later also ends later, however slow the machine is.
    """
    page.evaluate(
        """(milliseconds) => new Promise((done) => {
          requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, milliseconds)));
        })""",
        milliseconds,
    )


def drag(page, element, to_x, to_y, steps=6):
    """Press in the middle of `element`, move to the fractions (to_x, to_y) of the window's box."""
    box = element.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(to_x, to_y, steps=steps)
    page.mouse.up()
    rest(page, 300)  # the address and the hidden table follow the hand


# The medians of a hundred moves and of the work that follows each, and, by turns with them, of
# making 400 texts of SVG: in milliseconds.
CLOCK = """async (el) => {
  const move = (%s)(el);
  const namespace = "http://www.w3.org/2000/svg";
  const texts = () => {
    const svg = document.createElementNS(namespace, "svg");
    for (let k = 0; k < 400; k++) {
      const text = document.createElementNS(namespace, "text");
      text.setAttribute("x", (1.7 * k).toFixed(1));
      text.textContent = Math.sqrt(k).toFixed(3);
      svg.append(text);
    }
  };
  const taken = async (call) => {
    const start = performance.now();
    call();
    await Promise.resolve();
    return performance.now() - start;
  };
  const moves = [], yards = [];
  for (let i = 0; i < 100; i++) {
    moves.push(await taken(() => move(i)));
    yards.push(await taken(texts));
  }
  return [moves, yards].map((times) => times.sort((a, b) => a - b)[50]);
}"""

# For `pace`: the picture's marker by the arrow keys, fifty steps on and fifty back.
BY_KEY = """(el) => (i) => {
  const key = i < 50 ? "ArrowRight" : "ArrowLeft";
  const marker = el.querySelector(".rmsn-marker");
  marker.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
}"""


def by_slider(value):
    """For `pace`: the figure's first slider, set to `value`, a formula of i."""
    script = """(el) => (i) => {
      const input = el.querySelector("input");
      input.value = VALUE;
      input.dispatchEvent(new Event("input", { bubbles: true }));
    }"""
    return script.replace("VALUE", value)


def pace(found, start):
    """The median time of a move, in milliseconds of a machine that makes 400 texts in one.

    Here that is about true; a slower machine is slower in both. What else it does only lengthens a
    median: the least of five batches is nearest to the work itself, and a move that is slow is slow
    in all five. `start` is the source of a function of the figure's element that returns the
    function of i to be timed.
    """
    moves, texts = np.min([found.evaluate(CLOCK % start) for _ in range(5)], axis=0)
    return moves / texts
