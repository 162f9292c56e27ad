"""Programs that are no Python packages. FOCALCAL_REQUIRE_TOOLS=1 lets no test skip for want of one."""

import os
import shutil

import pytest


def needs(program):
    """A mark for tests that run `program`; without it they skip and say so, or fail where it is required."""
    missing = shutil.which(program) is None and os.environ.get("FOCALCAL_REQUIRE_TOOLS") != "1"
    return pytest.mark.skipif(missing, reason=f"{program} is not installed")
