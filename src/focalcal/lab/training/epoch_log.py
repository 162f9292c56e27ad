"""One record per epoch: JSON lines in a file and, if asked for, the numbers in TensorBoard."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from focalcal.core.atomic import write_atomically


class EpochLog:
    """Begins with the records of the epochs that a checkpoint has; records of later epochs in the file are removed."""

    def __init__(self, path: Path | None, tensorboard: Path | None, records: Iterable[Mapping[str, Any]]) -> None:
        known = list(records)
        self.path = path
        self._writer = None if tensorboard is None else _writer(tensorboard, len(known) + 1)
        if path is not None:
            write_atomically(path, "".join(map(_line, known)).encode())

    def add(self, record: Mapping[str, Any]) -> None:
        """One epoch, in one write, so that no reader sees a part of a line that is not at the end."""
        if self.path is not None:
            line = _line(record).encode()
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND)  # never made anew, without the epochs before
            with open(file, "ab", buffering=len(line) + 1) as handle:
                handle.write(line)
        if self._writer is not None:
            for name, value in _scalars(record):
                self._writer.add_scalar(name, value, record["epoch"])

    def close(self) -> None:
        """Flush what TensorBoard has not written yet."""
        if self._writer is not None:
            self._writer.close()


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, allow_nan=False) + "\n"


def _scalars(record: Mapping[str, Any]) -> Iterable[tuple[str, float]]:
    for name, value in record.items():
        if isinstance(value, dict):
            yield from ((f"{name}/{part}", number) for part, number in value.items() if isinstance(number, int | float))
        elif isinstance(value, list):
            yield from ((f"{name}/{place}", number) for place, number in enumerate(value))
        elif name != "epoch":
            yield name, value


def _writer(folder: Path, first_epoch: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "tensorboard":
            raise
        message = "logging to TensorBoard needs the package tensorboard: pip install tensorboard"
        raise ModuleNotFoundError(message, name="tensorboard") from error
    return SummaryWriter(str(folder), purge_step=first_epoch)
