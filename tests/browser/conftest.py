from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser.browser_support import CHROMIUM, FLAGS
from tests.browser.lab_support import jupyter_server, lab, lab_page, notebook7

__all__ = ["browser", "jupyter_server", "lab", "lab_page", "notebook7"]

expect.set_options(
    timeout=30_000
)  # ms, for a machine that is slow and busy; where a test passes, it costs nothing


# Not for the whole session: Playwright's loop runs as long, and no test that is a coroutine could run beside it.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    if not Path(CHROMIUM).exists():
        pytest.fail(f"{CHROMIUM} is missing; install it with: make browser")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield launched
        launched.close()
