"""The built book: no warning, every page, the same bytes each time, the buttons' addresses."""

import re
import shutil
from pathlib import Path

import build_book
import nbformat
from built_book import CACHE, Built, run_build
from export_notebooks import is_notebook

ROOT = Path(__file__).resolve().parents[1]
COLAB = re.compile(r'href="https://colab\.research\.google\.com/github/o/r/blob/main/([^"]+)"')
PICTURE = re.compile(r'<svg[^>]*viewBox="0 0 ([\d.]+)[^>]* class="picture"(.*?)</svg>', re.S)
LABEL = re.compile(r"<text.*?</text>", re.S)
REPOSITORY = re.compile(r'href="https://github\.com/[^"]*(?:rmsnorm-edu|/o/r)[^"]*"')


def test_the_book_builds_without_a_warning(built: Built) -> None:
    assert (built.code, re.findall(r".*(?:WARNING|ERROR).*", built.log)) == (0, []), built.log


def test_every_page_of_the_contents_is_written(html: Path) -> None:
    assert build_book.missing(html) == []
    assert "book/index" in build_book.toc_pages()
    assert 'url=book/index.html"' in (html / "index.html").read_text(encoding="utf-8")


def test_no_symbol_is_written_down_twice() -> None:
    """YAML keeps the last of two equal keys and says nothing: the learning rate lost its words."""
    keys = re.findall(r"^(\w+):", (ROOT / "book/notation.yml").read_text(encoding="utf-8"), re.M)
    assert sorted(keys) == sorted(set(keys))


def test_a_new_chapter_gets_a_notebook_to_link_to(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(build_book, "ROOT", tmp_path)
    book = tmp_path / "book"
    book.mkdir()
    (book / "new.md").write_text("---\nkernelspec: {}\n---\n# New", encoding="utf-8")
    (book / "plain.md").write_text("# No code", encoding="utf-8")
    build_book.placeholders()
    assert nbformat.read(book / "new.ipynb", as_version=4).cells == []
    assert not (book / "plain.ipynb").exists()
    (book / "new.ipynb").write_text("exported", encoding="utf-8")
    build_book.placeholders()
    assert (book / "new.ipynb").read_text(encoding="utf-8") == "exported"


def test_no_page_shows_where_an_object_lies_or_a_path_of_this_machine(html: Path) -> None:
    for page in build_book.toc_pages():
        text = (html / f"{page}.html").read_text(encoding="utf-8")
        assert re.search(r" at 0x[0-9a-f]{6}", text) is None, page
        assert str(ROOT) not in text, page


def test_a_phone_shows_letters_that_can_be_read_in_every_picture(html: Path) -> None:
    """On 390 px the text is 362 wide: there words have 9.5 px or more, exponents 8."""
    small = []
    for page in build_book.toc_pages():
        text = (html / f"{page}.html").read_text(encoding="utf-8")
        for number, (width, picture) in enumerate(PICTURE.findall(text), 1):
            scale = min(362 / float(width), 4 / 3)  # at most 4/3 px a point, as on a desk
            for label in LABEL.findall(picture):
                sizes = [scale * float(size) for size in re.findall(r"font-size: ([\d.]+)", label)]
                if max(sizes) < 9.5 or min(sizes) < 8:
                    words = re.sub(r"<[^>]*>|\s", "", label)
                    small.append(f"{page}, picture {number}: {words!r}, {min(sizes):.1f} px")
    assert small == [], "less wide a figsize makes letters larger on a phone"


def test_no_picture_has_a_rule_for_the_whole_page(html: Path) -> None:
    """Matplotlib's SVGs bring `*{…}`: inlined it would square the dots of a figure beside it."""
    for page in build_book.toc_pages():
        text = (html / f"{page}.html").read_text(encoding="utf-8")
        assert re.search(r"<style[^>]*>\s*\*\s*{", text) is None, page


def files(folder: Path) -> dict[str, bytes]:
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def test_two_builds_are_the_same_bytes(html: Path, tmp_path: Path) -> None:
    """Another folder, another hash seed, another time zone; everything executed again."""
    again = run_build(tmp_path, PYTHONHASHSEED="12345", TZ="Asia/Kathmandu")
    first, second = files(html), files(again.html)
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []


def test_with_an_address_each_page_with_code_has_one_colab_link(html: Path, tmp_path: Path) -> None:
    # the cells have run: this is about the buttons
    shutil.copytree(html.parents[1] / CACHE, tmp_path / CACHE)
    published = run_build(tmp_path, BOOK_REPO_URL="https://github.com/o/r")
    assert published.code == 0, published.log
    for page in build_book.toc_pages():
        links = COLAB.findall((published.html / f"{page}.html").read_text(encoding="utf-8"))
        assert links == ([f"{page}.ipynb"] if is_notebook(ROOT / f"{page}.md") else [])
        assert all((ROOT / link).is_file() for link in links)


def test_without_an_address_there_are_no_buttons(html: Path) -> None:
    for page in build_book.toc_pages():
        text = (html / f"{page}.html").read_text(encoding="utf-8")
        assert REPOSITORY.findall(text) == []
        assert "colab.research.google.com" not in text
