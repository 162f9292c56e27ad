"""Chromium without a window, driven over its DevTools pipe: real clicks and keys, and everything it complains about.

The protocol's messages are JSON texts that end with a NUL; Chromium reads them from descriptor 3 and writes to 4, so
that no package and no open port is needed.
"""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE = 60  # seconds that a page may take for one answer

_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-extensions",
    "--hide-scrollbars",
)
_CODES = {"Enter": 13, "Tab": 9, " ": 32, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, "Home": 36, "End": 35}


class Browser:
    """One tab. `complaints` are the page's errors and warnings, `dialogs` its alerts, `asked` its requests."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read, self._rest, self._last = write, read, b"", 0
        self.complaints: list[str] = []
        self.dialogs: list[str] = []
        self.asked: list[str] = []
        self._session: str | None = None
        self._loaded = False
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def open(self, path: Path, *, fragment: str = "", width: int = 1200, height: int = 900) -> None:
        """Load a file anew and wait until it has; earlier complaints are forgotten."""
        self.size(width, height)
        self._navigate("about:blank")  # else a mere change of the fragment would load nothing
        self.complaints, self.dialogs, self.asked = [], [], []
        self._navigate(path.resolve().as_uri() + (f"#{fragment}" if fragment else ""))

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page, awaited if it is a promise."""
        found = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise AssertionError(found["exceptionDetails"].get("exception", {}).get("description", found))
        return found["result"].get("value")

    def text(self, selector: str) -> str:
        """The text that the first such element shows."""
        return str(self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText"))

    def texts(self, selector: str) -> list[str]:
        """The texts that all such elements show."""
        return list(self.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map((e) => e.innerText)"))

    def click(self, selector: str) -> None:
        """Press the mouse in the middle of the first such element, scrolled into view."""
        x, y = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({ block: 'center', inline: 'nearest', behavior: 'instant' });"
            "const r = e.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str) -> None:
        """A key, to whatever has the focus."""
        code = _CODES[key]
        text = {"Enter": "\r", " ": " "}.get(key, "")
        down = "keyDown" if text else "rawKeyDown"
        self.send("Input.dispatchKeyEvent", type=down, key=key, code=key, windowsVirtualKeyCode=code, text=text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=code)

    def choose(self, selector: str, value: str) -> None:
        """An option of a select, as if picked."""
        self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.value = {json.dumps(value)};"
            f"if (e.value !== {json.dumps(value)}) throw new Error('no such option');"
            "e.dispatchEvent(new Event('change', { bubbles: true })); })()"
        )

    def until(self, condition: str) -> None:
        """Wait until an expression is true in the page."""
        end = time.monotonic() + PATIENCE
        while not self.evaluate(f"Boolean({condition})"):
            if time.monotonic() > end:
                raise AssertionError(f"never became true: {condition}")
            time.sleep(0.05)

    def prefers(self, scheme: str) -> None:
        """The system's colour scheme, light or dark."""
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def size(self, width: int, height: int) -> None:
        """Of the window, in CSS pixels."""
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def screenshot(self, path: Path, selector: str | None = None) -> None:
        """A PNG of an element however long, or of what the window shows."""
        clip = {}
        if selector:
            box = self.evaluate(
                f"(() => {{ const r = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
                "return [r.left + scrollX, r.top + scrollY, r.width, r.height]; })()"
            )
            clip = {"clip": dict(zip(("x", "y", "width", "height"), box, strict=True)) | {"scale": 1}}
        made = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=bool(selector), **clip)
        path.write_bytes(base64.b64decode(made["data"]))

    def pdf(self) -> bytes:
        """What printing gives."""
        return base64.b64decode(self.send("Page.printToPDF", printBackground=False, preferCSSPageSize=True)["data"])

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and give its result."""
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        answer: dict[str, Any] = {}

        def answered() -> bool:
            return bool(answer)

        self._wait(answered, self._last, answer)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return dict(answer["result"])

    def _navigate(self, address: str) -> None:
        self._loaded = False
        self.send("Page.navigate", url=address)
        self._wait(lambda: self._loaded)

    def _wait(self, done: Any, number: int = 0, answer: dict[str, Any] | None = None) -> None:
        end = time.monotonic() + PATIENCE
        while not done():
            message = self._next(end)
            if "method" in message:
                self._notice(message["method"], message["params"])
            elif message.get("id") == number and answer is not None:
                answer.update(message)

    def _next(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(0.0, end - time.monotonic()))
            part = os.read(self._read, 1 << 16) if ready else b""
            if not part:
                raise AssertionError("Chromium gave no answer" if not ready else "Chromium has ended")
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(text))

    def _notice(self, event: str, facts: dict[str, Any]) -> None:
        if event == "Page.loadEventFired":
            self._loaded = True
        elif event == "Runtime.exceptionThrown":
            details = facts["exceptionDetails"]
            self.complaints.append(str(details.get("exception", {}).get("description", details["text"])))
        elif event == "Runtime.consoleAPICalled" and facts["type"] in ("error", "warning", "assert"):
            self.complaints.append(" ".join(str(one.get("value", one)) for one in facts["args"]))
        elif event == "Log.entryAdded" and facts["entry"]["level"] in ("error", "warning"):
            self.complaints.append(facts["entry"]["text"])
        elif event == "Network.requestWillBeSent":
            self.asked.append(facts["request"]["url"])
        elif event == "Page.javascriptDialogOpening":
            self.dialogs.append(facts["message"])
            closing = {"id": 0, "method": "Page.handleJavaScriptDialog", "params": {"accept": True}}
            os.write(self._write, json.dumps({**closing, "sessionId": self._session}).encode() + b"\0")


@contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """A browser with a profile of its own, ended with the block."""
    to_read, to_us = os.pipe(), os.pipe()
    command = ["chromium", *_OPTIONS, "--remote-debugging-pipe", f"--user-data-dir={profile}"]
    shell = f'exec "$@" 3<&{to_read[0]} 4>&{to_us[1]}'
    process = subprocess.Popen(
        ["bash", "-c", shell, "chromium", *command],
        pass_fds=(to_read[0], to_us[1]),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    os.close(to_read[0])
    os.close(to_us[1])
    try:
        yield Browser(to_read[1], to_us[0])
    finally:
        os.close(to_read[1])  # Chromium ends when its pipe does
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(to_us[0])
