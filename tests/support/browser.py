"""Chromium without a window, by Playwright: the system's own, so that none is downloaded."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from playwright.sync_api import Browser, Error, Page, sync_playwright


class Tab:
    """A page in the browser. `complaints` are its errors and warnings, `dialogs` its alerts, `asked` its requests."""

    def __init__(self, browser: Browser, *, width: int = 1200, scheme: str = "light") -> None:
        self.complaints: list[str] = []
        self.dialogs: list[str] = []
        self.asked: list[str] = []
        phone = width < 600
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, is_mobile=phone, has_touch=phone,
            accept_downloads=True,
        )  # fmt: skip
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._console)
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("dialog", self._dialog)

    def open(self, path: Path, fragment: str = "") -> Page:
        """Load a file anew."""
        self.page.goto("about:blank")
        self.page.goto(path.resolve().as_uri() + (f"#{fragment}" if fragment else ""))
        return self.page

    def check(self) -> None:
        """Fail if the page complained, asked something, or asked for anything outside itself."""
        assert self.complaints == []
        assert self.dialogs == []
        assert {address.partition(":")[0] for address in self.asked} <= {"file", "blob", "data", "about"}

    def _console(self, message) -> None:
        if message.type in ("error", "warning", "assert"):
            self.complaints.append(message.text)

    def _dialog(self, dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.accept()


def wait_until(page: Page, expression: str) -> None:
    """Playwright's own waiting needs eval, which the policy of our pages forbids; the page may be loaded meanwhile."""
    deadline = time.monotonic() + 60
    while True:
        with suppress(Error):
            if page.evaluate(expression):
                return
        assert time.monotonic() < deadline, expression
        time.sleep(0.05)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser, ended with the block."""
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()
