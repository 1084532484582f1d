"""The clients' own tests, each on its real runtime, by the script that its developers use."""

from __future__ import annotations

import os

import pytest

from tests.acceptance.languages import CLIENTS, LANGUAGES, Language, run_in

_SECONDS = 900
# The Python client is tested by pytest itself: see `testpaths`.
_OTHERS = [language for language in LANGUAGES if language.name != "python"]


@pytest.mark.timeout(_SECONDS + 60)
@pytest.mark.parametrize("language", _OTHERS, ids=lambda language: language.name)
def test_the_client_passes_its_own_tests(language: Language) -> None:
    """Generated code is fresh, the linter is content, the tests pass; and nothing is printed."""
    if language.missing:
        pytest.skip(language.missing)
    ended = run_in(language.home, "./test", _SECONDS)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_every_client_is_known_here() -> None:
    """A client that is added must take part in all of this."""
    folders = {path.name for path in CLIENTS.iterdir() if os.access(path / "test", os.X_OK)}
    assert folders <= {language.name for language in _OTHERS}
