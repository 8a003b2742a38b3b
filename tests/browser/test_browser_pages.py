"""Every page of the built book, http and file: no network, no error, no sideways scroll, no axe violation."""

import gzip

import pytest

from tools import build_book

WRITTEN = [f"{page}.html" for page in build_book.toc_pages()]
PAGES = [*WRITTEN, "search.html", "genindex.html"]
CHAPTERS = [page for page in PAGES if "/equation/" in page]


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("scheme", ["http", "file"])
def test_a_page_asks_nobody_and_breaks_nothing(visit, site, html, scheme, name):
    page = visit((site if scheme == "http" else html.as_uri() + "/") + name)
    figures = page.locator(".rmsn-figure")
    for figure in figures.all():
        figure.scroll_into_view_if_needed()
    page.wait_for_function(
        "document.querySelectorAll('.rmsn-figure').length"
        " === document.querySelectorAll('.rmsn-figure[data-ready]').length"
    )
    assert page.problems == []
    assert page.locator("[data-mml-node=merror]").count() == 0
    assert page.locator("text=/No key .* found/").count() == 0


@pytest.mark.parametrize("name", WRITTEN)
def test_nothing_scrolls_sideways_on_a_small_phone(visit, site, name):
    page = visit(site + name, width=320)
    assert page.evaluate("document.documentElement.scrollWidth") == 320


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", WRITTEN)
def test_axe_finds_nothing_in_the_article(visit, site, name, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = visit(site + name, scheme=scheme)
    page.add_style_tag(content="*, *::before, *::after { transition: none !important; }")
    for fold in page.locator("article details").all():
        fold.evaluate("fold => { fold.open = true; }")
    page.wait_for_timeout(300)
    found = axe.run(page, context="article").response["violations"]
    told = [f"{v['id']}: {n['html'][:120]}" for v in found for n in v["nodes"]]
    assert told == []


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
