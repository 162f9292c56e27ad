"""One check of many entries: all of them refuse the same input, in the same words."""

import re
from collections.abc import Callable, Iterable


def assert_refused(
    names: Iterable[str], use: Callable[[str], object], error: type | tuple[type, ...], message: str
) -> None:
    """Each use raises the error with a message that matches; otherwise say which entry did what."""
    heard = {name: _refusal(use, name) for name in names}
    assert heard
    others = {name: answer for name, answer in heard.items() if not _matches(answer, error, message)}
    assert not others, f"{error} with {message!r} was expected; got {others}"


def _refusal(use: Callable[[str], object], name: str) -> object:
    try:
        return use(name)
    except Exception as error:
        return error


def _matches(answer: object, error: type | tuple[type, ...], message: str) -> bool:
    return isinstance(answer, error) and re.search(message, str(answer)) is not None
