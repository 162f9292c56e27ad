"""File systems of their own, to be filled up or made read-only."""

import subprocess
from contextlib import contextmanager

import pytest


@contextmanager
def mounted(folder, options):
    """A small file system; the test is skipped where we may not mount one."""
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip(f"needs the right to mount: {made.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def make_read_only(folder):
    """From now on."""
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
