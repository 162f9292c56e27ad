"""What cells do in the tests of grids; a module of its own, so that other processes can import it."""

import ctypes
import functools
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import torch

from focalcal import Predictions
from focalcal.lab.store import Spec
from focalcal.lab.studies.events import Progress
from focalcal.lab.training.non_finite import NonFiniteLossError


def cell(seed: int, objective: str = "ce", **options) -> Spec:
    """A spec that only these functions understand."""
    training = {"epochs": 3}
    return Spec(
        data_set="toy", model="linear", objective=objective, objective_options=options, seed=seed, training=training
    )


def claimed(work):
    """One process at a time, and not at all if the run is there by then; as `run_spec` does."""

    @functools.wraps(work)
    def once(spec, store, **options):
        with store.claim(spec):
            if not store.has(spec):
                work(spec, store, **options)

    return once


def store_run(spec, store, loss: float = 0.0) -> None:
    """Finish the cell."""
    logits = np.zeros((2, 2), dtype=np.float32)
    predictions = [Predictions(logits=logits, labels=np.array([0, 1]), split="test")]
    record = {
        "metrics": {"test": {"nll": loss}},
        "provenance": {"pid": os.getpid(), "threads": torch.get_num_threads()},
        "seconds": 0.0,
        "epochs": 3,
    }
    store.add(spec, record=record, epochs=None, predictions=predictions)


def count_call(spec, store) -> None:
    """One line in `calls.txt` beside the store for every call of a work function, written in one piece."""
    with open(f"{store.path}-calls.txt", "ab", buffering=0) as file:
        file.write(f"{spec.key} {os.getpid()}\n".encode())


def calls(store) -> list[tuple[str, int]]:
    """(key, process) of every call so far."""
    path = Path(f"{store.path}-calls.txt")
    return [(key, int(pid)) for key, pid in map(str.split, path.read_text().splitlines())] if path.exists() else []


@claimed
def at_once(spec, store, report) -> None:
    """Finish without doing anything."""
    count_call(spec, store)
    store_run(spec, store)


@claimed
def count_threads_of_server(spec, store, report) -> None:
    """The number of threads of the process that this one was forked from, as the loss."""
    store_run(spec, store, float(len(os.listdir(f"/proc/{os.getppid()}/task"))))


@claimed
def train(spec, store, report) -> None:
    """Fit a small network: numbers that rounding would betray, were they computed in another order."""
    count_call(spec, store)
    generator = torch.Generator().manual_seed(spec.seed)
    inputs, labels = torch.randn(512, 64, generator=generator), torch.randint(10, (512,), generator=generator)
    torch.manual_seed(spec.seed)
    network = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    for step in range(20):
        loss = torch.nn.functional.cross_entropy(network(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        report(Progress(spec.key, step + 1, 20, f"loss {loss.item():.2f}"))
    store_run(spec, store, loss.item())


@claimed
def end_as_named(spec, store, report) -> None:
    """End in the way that the objective names; any other name finishes."""
    count_call(spec, store)
    print(f"about to do {spec.objective}")
    sys.stdout.flush()
    match spec.objective:
        case "raise":
            raise LookupError("no such thing")
        case "exit":
            sys.exit("enough")
        case "memory error":
            np.empty(2**62, dtype=np.uint8)
        case "torch memory":
            torch.empty(2**62, dtype=torch.uint8)
        case "non-finite":
            raise NonFiniteLossError(epoch=2, batch=7, value=float("nan"), ids=[3, 4])
        case "segfault":
            ctypes.string_at(0)
        case "abort":
            os.abort()
        case "sigkill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "silent exit":
            os._exit(0)
        case "exit code 3":
            os._exit(3)
        case "forgets":
            return
    store_run(spec, store)


def fill_memory(spec, store, report, megabytes: int) -> None:
    """Hold so much memory at once, written to, then finish."""
    held = torch.ones(megabytes * 2**18, dtype=torch.float32)
    store_run(spec, store, float(held[-1]))


@claimed
def until_told(spec, store, report) -> None:
    """Say which process this is, and finish when the file `go` is there; fail rather than wait for ever."""
    count_call(spec, store)
    report(Progress(spec.key, 0, 1, str(os.getpid())))
    deadline = time.monotonic() + 240
    while not Path(f"{store.path}-go").exists():
        if time.monotonic() > deadline:
            raise TimeoutError("nobody said go")
        time.sleep(0.02)
    store_run(spec, store)


@claimed
def in_a_long_call(spec, store, report) -> None:
    """Say which process this is, and then nothing for a minute: it is within one call of torch."""
    report(Progress(spec.key, 0, 1, str(os.getpid())))
    torch.linalg.svd(torch.randn(4000, 4000, dtype=torch.float64))
    store_run(spec, store)


def let_go(store) -> None:
    """Tell the cells of `until_told`."""
    Path(f"{store.path}-go").touch()


def leaves_a_thread(spec, store, report) -> None:
    """Finish, and leave something behind that keeps the process from ending."""
    import threading

    store_run(spec, store)
    threading.Thread(target=time.sleep, args=(1000,)).start()


def environment_value(spec, store, report, name: str) -> None:
    """Fail with the value of an environment variable."""
    raise LookupError(f"{name}={os.environ.get(name)}")
