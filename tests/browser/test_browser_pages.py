"""Every page of the built book: no network, no error, no axe violation, no sideways scroll."""

import gzip
import re

import build_book
import pytest

from browser.figures import rest

PAGES = [*(f"{page}.html" for page in build_book.toc_pages()), "search.html", "genindex.html"]
ARTICLE = "article.bd-article"  # what is around it is the theme's; the search page has none
CHAPTERS = [page for page in PAGES if "/equation/" in page]


def wake(page):
    """Scroll to each figure and wait until all are alive."""
    for figure in page.locator(".rmsn-figure").all():
        figure.scroll_into_view_if_needed()
    page.wait_for_function(
        "document.querySelectorAll('.rmsn-figure').length"
        " === document.querySelectorAll('.rmsn-figure[data-ready]').length"
    )


def broken(page):
    """Requests, errors, formulas and values that went wrong."""
    formulas = page.locator("[data-mml-node=merror]").all()
    values = page.locator("text=/No key .* found/").all()
    return [*page.problems, *(e.inner_text() for e in (*formulas, *values))]


def violations(page, *rules):
    """What axe finds in the article (by all rules, or these), one line a node, every fold open."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page.add_style_tag(content="*, *::before, *::after { transition: none !important; }")
    page.evaluate("document.querySelectorAll('article details').forEach(f => { f.open = true; })")
    rest(page, 200)
    if page.locator(ARTICLE).count() == 0:
        return []
    options = {"resultTypes": ["violations"]} | ({"runOnly": list(rules)} if rules else {})
    context = {"include": [[ARTICLE]], "exclude": [[".highlight"]]}  # thousands of like tokens
    found = axe.run(page, context=context, options=options).response["violations"]
    return [f"{v['id']}: {node['html'][:120]}" for v in found for node in v["nodes"]]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_opened_as_a_file_asks_nobody(visit, html, name):
    page = visit(f"{html.as_uri()}/{name}")
    wake(page)
    assert broken(page) == []


@pytest.mark.parametrize("name", PAGES)
def test_a_served_page_is_whole_accessible_and_fits_a_small_phone(visit, site, name):
    page = visit(site + name)
    wake(page)
    assert broken(page) == []
    assert violations(page) == []
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    assert violations(page, "color-contrast") == []
    page.set_viewport_size({"width": 320, "height": 700})
    rest(page, 200)
    assert page.evaluate("document.documentElement.scrollWidth") == 320


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_code_has_contrast(visit, site, scheme):
    """The three blocks with the most tokens; the page test leaves code out."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = visit(site + "book/equation/numpy.html", scheme=scheme)
    page.evaluate(
        "[...document.querySelectorAll('.highlight')]"
        ".sort((a, b) => b.querySelectorAll('span').length - a.querySelectorAll('span').length)"
        ".slice(0, 3).forEach((block) => block.classList.add('judged'))"
    )
    found = axe.run(page, context=".judged", options={"runOnly": ["color-contrast"]})
    assert found.response["violations"] == []
    assert found.response["passes"], "axe looked at something"


@pytest.mark.parametrize("name", CHAPTERS)
def test_quiz_and_hints_open_by_keyboard(visit, site, name):
    page = visit(site + name)
    answer = page.locator("details.answer").first
    answer.locator("> summary").focus()
    page.keyboard.press("Enter")
    assert answer.get_attribute("open") is not None
    assert answer.locator("> p").inner_text().startswith(("Yes.", "No."))
    hint = page.locator("details.hint").first
    assert not hint.locator("details.hint").first.is_visible()
    hint.locator("> summary").focus()
    page.keyboard.press("Space")
    assert hint.locator("details.hint").first.is_visible(), "the next hint shows when one is open"


def test_a_symbol_tells_its_meaning_on_focus_and_escape_closes_it(visit, site):
    page = visit(site + "book/equation/why_normalise.html")
    symbol = page.locator("a.sym").first
    tip = symbol.locator(".tip")
    clipped = "tip => getComputedStyle(tip).width === '1px'"
    assert tip.evaluate(clipped)
    page.keyboard.press("Tab")  # so that the browser shows focus as the keyboard's
    symbol.focus()
    assert not tip.evaluate(clipped)
    assert len(tip.inner_text()) > 10
    page.keyboard.press("Escape")
    assert tip.evaluate(clipped)


def test_pictures_follow_the_theme(visit, site):
    def ink(scheme):
        page = visit(site + "book/equation/why_normalise.html", scheme=scheme)
        picture = page.locator("svg.picture").first
        assert len(picture.get_attribute("aria-label")) > 40
        return picture.locator("text, path").last.evaluate("e => getComputedStyle(e).fill")

    assert ink("light") != ink("dark")


def contrast_with_white(colour):
    """WCAG's ratio for "rgb(…)" on paper; https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio."""
    shares = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares]
    return 1.05 / (0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)


def test_a_dark_page_prints_dark_on_light_and_is_dark_again(visit, site):
    page = visit(site + "book/equation/why_normalise.html", scheme="dark")
    page.evaluate(
        "addEventListener('beforeprint', () => { window.printed = ['article p', 'article h2',"
        " '.highlight .kn', '.rmsn-title', 'svg.picture text'].map(found => {"
        " const style = getComputedStyle(document.querySelector(found));"
        " return found.startsWith('svg') ? style.fill : style.color; }); })"
    )
    page.pdf()
    for colour in page.evaluate("window.printed"):
        assert contrast_with_white(colour) >= 4.5, colour
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_first_visit_is_light_enough(visit, site, html):
    """At most 1.6 MB a page, as a server that compresses would send it."""
    sizes = {}

    def weigh(response):
        sizes[response.url] = len(gzip.compress(response.body()))

    page = visit("about:blank")
    page.on("response", weigh)
    page.goto(site + "book/equation/invariance.html")
    page.wait_for_load_state("networkidle")
    assert sum(sizes.values()) <= 1_600_000, sizes
