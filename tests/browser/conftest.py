"""A Chromium that refuses every request to another host and remembers what went wrong."""

import os
import shutil

import pytest

from browser.figures import PAGES

PATIENCE = 120_000  # milliseconds, for a slow or busy machine: what comes sooner is not waited for
LOCAL = ("http://127.0.0.1", "file:", "data:", "blob:")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def chromium():
    """One browser process for all tests of a worker."""
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if not path:
        pytest.skip("no Chromium: apt-get install chromium, or set CHROMIUM to its path")
    playwright = pytest.importorskip("playwright.sync_api")
    driver = playwright.sync_playwright()
    try:
        started = driver.start()
    except Exception as error:  # its own type for it is private
        # a reader without the library misses these tests by name; CI, which installs it, must not
        give_up = pytest.fail if os.environ.get("CI") else pytest.skip
        give_up(f"Playwright's driver does not start ({error}): apt-get install libatomic1")
    browser = started.chromium.launch(executable_path=path, args=FLAGS, timeout=PATIENCE)
    yield browser
    browser.close()
    started.stop()


@pytest.fixture
def visit(chromium):
    """visit(url, width=1280, scheme="light", …) -> a page with `problems`, loaded and at rest."""
    contexts = []

    def open_page(url, width=1280, scheme="light", **options):
        viewport = {"width": width, "height": 900}
        context = chromium.new_context(viewport=viewport, color_scheme=scheme, **options)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        watch(page)
        page.goto(url, wait_until="load")
        page.evaluate("window.MathJax?.startup?.promise.then(() => 0)")
        return page

    yield open_page
    for context in contexts:
        context.close()


def watch(page):
    """Refuse what is not local; collect refused requests, failed ones and page errors."""
    page.problems = []

    def route(request):
        if request.request.url.startswith(LOCAL):
            request.continue_()
        else:
            page.problems.append(f"asked for {request.request.url}")
            request.abort()

    page.route("**/*", route)
    page.on("pageerror", lambda error: page.problems.append(f"page error: {error}"))
    page.on(
        "response", lambda r: page.problems.append(f"{r.status} {r.url}") if r.status >= 400 else 0
    )


@pytest.fixture
def figure(visit, site):
    """figure(name, …) -> its page in the book, and the explorable, alive and in view."""

    def open_figure(name, **options):
        page = visit(site + PAGES[name], **options)
        found = page.locator(f'.rmsn-figure[id^="{name}-"][data-ready]').first
        found.wait_for()
        found.scroll_into_view_if_needed()
        return page, found

    return open_figure


@pytest.fixture
def alone(visit, tmp_path):
    """alone("Name", width=…) -> a page that holds nothing but the explorable, and that."""
    from rmsnorm_edu import explorables

    def open_figure(name, **options):
        file = tmp_path / "figure.html"
        shown = getattr(explorables, name)().to_html()
        file.write_text(f"<!doctype html><meta charset=utf-8>{shown}", encoding="utf-8")
        page = visit(file.as_uri(), **options)
        found = page.locator(".rmsn-figure[data-ready]")
        found.wait_for()
        return page, found

    return open_figure
