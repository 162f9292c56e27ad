"""The Ray cluster that work runs on: one that is up already, or one of this machine for the time of a block."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

SECONDS_TO_REACH = 10.0  # the port of an address
SECONDS_TO_ANSWER = 60.0  # for a cluster: of which Python needs a few to import Ray
_OBJECT_STORE = 100 * 2**20  # bytes; cells exchange nothing but a few words with the driver
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
_CONNECT = "import logging, ray, sys; ray.init(sys.argv[1], log_to_driver=False, logging_level=logging.ERROR)"

_NO_NODE = "join it with `ray start --address=HOST:PORT`, or connect as a client: ray://HOST:10001"
_TOKEN = "set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or ~/.ray/auth_token to what `ray get-auth-token` says there"
_REFUSALS = (  # what Ray says in a traceback, what it means, and what to do
    ("AuthenticationError", "the head wants a token that this process does not have", _TOKEN),
    (
        "ray client connection timeout",
        "no server of clients lets this process in",
        f"if its head wants a token, {_TOKEN}",
    ),
    ("Version mismatch", "the head has another version of Ray or Python", "install the same ones here"),
    ("matching raylet", "this machine is no node of the head's cluster", _NO_NODE),
    ("node_ip_address.json", "this machine is no node of the head's cluster", _NO_NODE),
)


@contextmanager
def connection(ray: Any, address: str | None, retries: int) -> Iterator[None]:
    """A cluster to use, left afterwards if it was entered here."""
    if ray.is_initialized():
        if address is not None:
            raise ValueError(
                f"address must be None in a process that is connected to a cluster, got {address!r}; "
                "call ray.shutdown() first"
            )
        yield
        return
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    if address is not None:
        _check_answers(address)
    with _own_sigterm():
        _connect(ray, address, retries)
    try:
        if address is None:
            with _guard():
                yield
        else:
            yield
    finally:
        ray.shutdown()


def _connect(ray: Any, address: str | None, retries: int) -> None:
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is not None:
        ray.init(address, **quiet)
        return
    ray.init(
        "local",
        include_dashboard=False,
        object_store_memory=_OBJECT_STORE,
        runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}},  # what is found here is found there
        _system_config={"task_oom_retries": retries},  # else Ray repeats what outgrows the memory without end
        **quiet,
    )


def _check_answers(address: str) -> None:
    """Raise ConnectionError if there is no cluster: `ray.init` would try for five minutes, and cannot be interrupted.

    The port is asked first, which is quick where nothing listens; then another process connects, which can be ended.
    Where a port listens, what Ray said then is told: the head may be up, and have a reason to refuse.
    """
    place = urlsplit(address if "://" in address else f"//{address}")
    listens = False
    try:
        if place.hostname and place.port:
            socket.create_connection((place.hostname, place.port), timeout=SECONDS_TO_REACH).close()
            listens = True
        command = [sys.executable, "-c", _CONNECT, address]
        subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_TO_ANSWER, check=True)
    except subprocess.TimeoutExpired:
        reason = f"nothing was heard for {SECONDS_TO_ANSWER:.0f} s"
        remedy = "check that this is the port of a head (6379), or of its clients (ray://HOST:10001), and the firewall"
    except subprocess.CalledProcessError as error:
        told = error.stderr.strip()
        reason = told.splitlines()[-1] if told else f"exit code {error.returncode}"
        remedy = "see `ray status` there"
        for words, known, what in _REFUSALS:
            if words in told:
                reason, remedy, listens = known, what, True
                break
    except (OSError, ValueError) as error:  # which is what a port that is no number gives
        reason = getattr(error, "strerror", None) or str(error)
    else:
        return
    if not listens:
        raise ConnectionError(
            f"address: no Ray cluster answers at {address!r} ({reason}); start one with `ray start --head`"
        )
    raise ConnectionError(f"address: something listens at {address!r}, but cannot be used ({reason}); {remedy}")


@contextmanager
def _own_sigterm() -> Iterator[None]:
    """`ray.init` puts a handler of its own in the place of ours, which ends the process without a word."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    except SystemExit as error:
        if error.code == signal.SIGTERM:
            raise KeyboardInterrupt from None
        raise
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


@contextmanager
def _guard() -> Iterator[None]:
    """A process that ends Ray's agents with this one, should it be killed: else they stay for another minute.

    The kernel ends the cluster's other processes. The agents, which are the raylet's children, try to report its
    death to a server that is dead as well.
    """
    if not hasattr(os, "pidfd_open"):
        yield
        return
    command = [sys.executable, "-I", str(Path(__file__)), *map(str, _agents())]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True):
        yield  # its end closes the pipe


def _agents() -> list[int]:
    """The children of this process's raylet, by process id."""
    psutil = import_module("psutil")  # Ray brings it
    try:
        family = psutil.Process().children(recursive=True)
        return [child.pid for raylet in family if raylet.name() == "raylet" for child in raylet.children()]
    except psutil.Error:  # one of them has ended meanwhile
        return []


def _kill_when_input_ends(pids: list[str]) -> None:
    """What the guard does: wait for the end of the process at the other end of the pipe, however it comes.

    The processes are held by file descriptors from the start, so that no other that gets one of the numbers is meant.
    """
    held = []
    for pid in pids:
        with suppress(ProcessLookupError):
            held.append(os.pidfd_open(int(pid)))
    sys.stdin.read()
    for process in held:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(process, signal.SIGKILL)


if __name__ == "__main__":  # the guard
    _kill_when_input_ends(sys.argv[1:])
