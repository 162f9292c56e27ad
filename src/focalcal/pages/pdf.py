"""A page as PDF, printed by a browser that is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from focalcal.core.atomic import write_atomically

BROWSERS = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge", "msedge",
    "brave-browser", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)  # fmt: skip
_SECONDS = 120


def find_browser() -> str:
    """The command of the first browser that can print without a window; $FOCALCAL_BROWSER names another one."""
    named = os.environ.get("FOCALCAL_BROWSER")
    for name in [named] if named else BROWSERS:
        if found := shutil.which(name):
            return found
    if named:
        raise FileNotFoundError(f"FOCALCAL_BROWSER must name a browser, got {named!r}, which is not there; unset it")
    raise FileNotFoundError(
        "a PDF is printed by Chromium, Chrome or Edge, and none is installed here; install chromium, or open the "
        "HTML page in a browser and print it"
    )


def write_pdf(html: str, path: str | os.PathLike[str]) -> None:
    """Print a page to A4."""
    browser = find_browser()
    with tempfile.TemporaryDirectory(prefix="focalcal-pdf-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "page.html").write_text(html, encoding="utf-8")
        made = folder / "page.pdf"
        command = [
            browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer", "--no-first-run",
            f"--user-data-dir={folder / 'profile'}", f"--print-to-pdf={made}", (folder / "page.html").as_uri(),
        ]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise OSError(f"{browser} took more than {_SECONDS} s to print; print the HTML page by hand") from None
        if not made.is_file():
            last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise OSError(f"{browser} printed no PDF ({' '.join(last)[:200]}); print the HTML page by hand")
        write_atomically(Path(path), made.read_bytes())
