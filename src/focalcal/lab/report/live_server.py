"""A live report on this machine's loopback address: read-only, behind a token, for a browser on the same machine."""

from __future__ import annotations

import json
import re
import secrets
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from focalcal.lab.report.live_report import LiveReport

LOOPBACK = "127.0.0.1"
_NAMES = (LOOPBACK, "localhost")  # that a browser may have called this server by
_POLLS = 10.0  # seconds within which an open page asks again
_POLICY = re.compile(rb'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')  # before anything of a run
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class LiveServer(ThreadingHTTPServer):
    """Answers GET and HEAD of `/TOKEN/`, the page, and `/TOKEN/progress`, JSON; nothing else.

    A request that calls the server by another name than the loopback's is refused, so that a page elsewhere cannot
    reach it through a name that it has made point here (DNS rebinding).
    """

    daemon_threads = True
    allow_reuse_address = False
    request_queue_size = 1024  # connections that wait to be accepted; beyond them the kernel drops some

    def __init__(self, report: LiveReport, port: int = 0) -> None:
        super().__init__((LOOPBACK, port), _Handler)
        self.report, self.token = report, secrets.token_urlsafe(16)
        self.asked_at = -1e9  # when a page last asked how far it is
        self.shown = ""  # the version that a page last had

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{LOOPBACK}:{self.server_port}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser may leave before it has heard everything; any other error is told of."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def wait_for_pages(self, seconds: float = 15.0) -> None:
        """Until an open page shows the last version, or so long; at once if none is open."""
        until = time.monotonic() + seconds
        while time.monotonic() < min(until, self.asked_at + _POLLS):
            if self.shown == self.report.progress()["version"]:
                return
            time.sleep(0.2)


class _Handler(BaseHTTPRequestHandler):
    server: LiveServer
    server_version, sys_version = "focalcal", ""
    timeout = 30  # seconds after which a connection that says nothing is closed

    def do_GET(self) -> None:
        """Send the page or its progress."""
        hosts = self.headers.get_all("Host", [])
        if len(hosts) > 1:  # of which another program on the way could have checked the other one
            self._send(HTTPStatus.BAD_REQUEST)
            return
        if hosts not in [[f"{name}:{self.server.server_port}"] for name in _NAMES]:
            self._send(HTTPStatus.FORBIDDEN)
            return
        root = f"/{self.server.token}/"
        if secrets.compare_digest(self.path.encode(), root.encode()):
            self._send(HTTPStatus.OK, self.server.report.page(), "text/html; charset=utf-8")
        elif secrets.compare_digest(self.path.encode(), f"{root}progress".encode()):
            progress = self.server.report.progress()
            self.server.asked_at = time.monotonic()
            self.server.shown = self.headers.get("X-Version", "")
            self._send(HTTPStatus.OK, json.dumps(progress).encode(), "application/json")
        else:
            self._send(HTTPStatus.NOT_FOUND)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the terminal shows the cells."""

    def _send(self, status: HTTPStatus, content: bytes = b"", kind: str = "text/plain; charset=utf-8") -> None:
        stated = _POLICY.search(content) if kind.startswith("text/html") else None
        policy = stated[1].decode() if stated else "default-src 'none'"
        about = {
            "Content-Security-Policy": f"{policy}; frame-ancestors 'none'",  # which a <meta> element cannot say
            "Content-Type": kind,
            "Content-Length": str(len(content)),
        }
        self.send_response(status)
        for name, value in {**_HEADERS, **about}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


@contextmanager
def serve(report: LiveReport, port: int = 0) -> Iterator[LiveServer]:
    """A server in threads of its own for the time of the block; port 0 stands for any that is free."""
    with LiveServer(report, port) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
