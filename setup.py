"""The native module: optional, built without torch, one binary for every Python >= 3.11.

FOCALCAL_BUILD_NATIVE=0 leaves it out: the wheel is then for every platform.
"""

import os
import sys
from glob import glob
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

NATIVE = os.environ.get("FOCALCAL_BUILD_NATIVE") != "0"
NOTICE = """
    focalcal: the native module could not be built ({error}).
    Everything works without it, on ordinary torch operations; only slower.
    To have it, install a C compiler (Debian: apt-get install gcc) and install focalcal again.
"""


class OptionalKernel(build_ext):
    """Build with OpenMP, else without, else not at all: an install never fails for want of a compiler."""

    def build_extension(self, ext: Extension) -> None:
        msvc = self.compiler.compiler_type == "msvc"
        plain = [] if msvc else ["-O3", "-std=gnu11", "-fno-math-errno", "-fno-trapping-math"]
        openmp = ["/openmp"] if msvc else ["-fopenmp"]
        error: Exception | None = None
        for extra in (openmp, []):
            ext.extra_compile_args = plain + extra
            ext.extra_link_args = [] if msvc else extra
            try:
                super().build_extension(ext)
                return
            except Exception as failure:
                error = failure
        print(NOTICE.format(error=error), file=sys.stderr)

    def copy_extensions_to_source(self) -> None:
        # An editable install copies what was built next to the sources; there may be nothing.
        every, self.extensions = self.extensions, [e for e in self.extensions if self._target(e).exists()]
        super().copy_extensions_to_source()
        self.extensions = every

    def get_outputs(self) -> list[str]:
        missing = {str(self._target(e)) for e in self.extensions if not self._target(e).exists()}
        return [path for path in super().get_outputs() if path not in missing]

    def _target(self, ext: Extension) -> Path:
        return Path(self.build_lib) / self.get_ext_filename(self.get_ext_fullname(ext.name))


class StableAbiWheel(bdist_wheel):
    def finalize_options(self) -> None:
        if NATIVE:
            self.py_limited_api = "cp311"
        super().finalize_options()


setup(
    ext_modules=[
        Extension(
            "focalcal._native._kernel",
            sources=sorted(glob("src/focalcal/_native/*.c")),
            depends=sorted(glob("src/focalcal/_native/*.h")),
            py_limited_api=True,
            optional=True,
        )
    ]
    if NATIVE
    else [],
    cmdclass={"build_ext": OptionalKernel, "bdist_wheel": StableAbiWheel},
)
