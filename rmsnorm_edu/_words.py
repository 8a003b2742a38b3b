"""A word out of a list of words, or an error that says which there are."""

from collections.abc import Mapping
from typing import Any, TypeVar

_T = TypeVar("_T")


def known(word: Any, words: Mapping[str, _T], what: str) -> _T:
    """What `words` has for `word`; ValueError, with all words, for anything else.

    >>> known("b", {"a": 1}, "letter")
    Traceback (most recent call last):
    ValueError: letter = 'b'; it is one of a
    """
    if not isinstance(word, str) or word not in words:  # a list would not even hash
        raise ValueError(f"{what} = {word!r}; it is one of {', '.join(words)}")
    return words[word]
