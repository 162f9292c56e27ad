#!/bin/sh
# Build the kernel with AddressSanitizer and UndefinedBehaviorSanitizer, and fuzz it once more.
set -eu
python=${PYTHON:-python3}
gcc=${CC:-gcc}
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp -r "$root/src" "$work/src"
rm -f "$work"/src/focalcal/_native/*.so
include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
"$gcc" -std=gnu11 -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined \
    -fopenmp -fPIC -shared -I"$include" "$root"/src/focalcal/_native/*.c \
    -o "$work/src/focalcal/_native/_kernel.abi3.so"

cd "$root"
export LD_PRELOAD="$("$gcc" -print-file-name=libasan.so) $("$gcc" -print-file-name=libstdc++.so)"
# torch's own allocations are never freed at exit, so leaks are not looked for; everything else aborts.
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 UBSAN_OPTIONS=print_stacktrace=1 PYTHONPATH="$work/src"
# Without the instrumented kernel the tests below would skip, and prove nothing.
"$python" -c "import sys; from focalcal import _native
sys.exit(not (_native.available() and _native.kernel().__file__.startswith('$work')))"
"$python" -m pytest -q -p no:cacheprovider --capture=no tests/native/test_fuzz.py tests/native/test_score_fuzz.py \
    tests/native/test_softmax.py \
    tests/theory/test_native_minimiser.py
