"""Where a run's numbers come from: software, machine, data and time. No names of people, hosts or folders."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

import focalcal
from focalcal.core.atomic import write_atomically

_GIT_SECONDS = 10


def software() -> dict[str, Any]:
    """Versions of what computes, and the commit of the package's repository if it is in one."""
    return {
        "focalcal": focalcal.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "commit": commit(Path(focalcal.__file__).parent),
    }


def machine(device: str | torch.device, threads: int) -> dict[str, Any]:
    """What the numbers were computed on. `instructions` are those that torch's kernels use on the processor."""
    place = torch.device(device)
    facts: dict[str, Any] = {
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "device": str(place),
        "threads": threads,
    }
    if place.type == "cuda":
        facts["device_name"] = torch.cuda.get_device_name(place)
    return facts


def commit(folder: Path) -> Mapping[str, Any] | None:
    """{"id": ..., "dirty": whether tracked files were changed} of the repository whose files these are, else None.

    An installed package can lie inside a repository that is not its own, so its files must be tracked there.
    """
    if _git(folder, "ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    head, changes = _git(folder, "rev-parse", "HEAD"), _git(folder, "status", "--porcelain", "--untracked-files=no")
    return None if head is None or changes is None else {"id": head, "dirty": bool(changes)}


def _git(folder: Path, *arguments: str) -> str | None:
    """What git prints; None if it is not installed or the folder is in no repository."""
    # Without optional locks a status never disturbs somebody's commit in the same repository.
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            env=environment,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def earlier_attempts(folder: Path, this: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The attempts whose checkpoint this one goes on from, the first of them first; notes this one in the folder.

    They can have had another machine, number of threads or version, which the numbers then come from as well.
    """
    path = folder / "attempts.json"
    resumes = (folder / "checkpoint.pt").exists() and path.exists()
    earlier: list[Mapping[str, Any]] = json.loads(path.read_text()) if resumes else []
    write_atomically(path, json.dumps([*earlier, this]).encode())
    return earlier
