"""Starts Debian's Chromium under Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PAGES = ("/", "/runs", "/schedules", "/leadership", "/pods", "/state")
_NAMES = ("chromium", "chromium-browser", "google-chrome")


def _path() -> str | None:
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


def missing() -> str:
    """Why there is no browser; empty if there is one."""
    if find_spec("playwright") is None:
        return "playwright is not installed: run make setup"
    return "" if _path() else "chromium is not installed: apt-get install chromium"


@contextmanager
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=_path(), args=FLAGS, headless=True)
        try:
            yield running
        finally:
            running.close()
