/* What the files of the native module share. No torch header is among it: callers hand over addresses and
 * strides that they have checked. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))

enum { FLOAT32, FLOAT64, BFLOAT16, FLOAT16 };
enum { ELEMENTS_A_THREAD = 32768, MOST_THREADS = 256 };

/* The functions that Python sees. */
PyObject *fused_loss(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *score_pass(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *bin_moments(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *minimisers(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *moment_sums(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *affine_rows(PyObject *self, PyObject *const *args, Py_ssize_t count);

/* libgomp's threads do not survive a fork, and a parallel region would wait for them for ever. */
extern int forked;

INLINE int threads_for(int64_t elements, int64_t wanted)
{
    const int64_t useful = elements / ELEMENTS_A_THREAD;
    if (forked || wanted < 1 || useful < 1)
        return 1;
    const int64_t threads = wanted < useful ? wanted : useful;
    return (int)(threads < MOST_THREADS ? threads : MOST_THREADS);
}

/* Denormal numbers cost a hundred cycles each; where p < 1e-38 means nothing they count as 0. */
INLINE uint64_t flush_denormals(void)
{
#if defined(__SSE2__)
    const uint64_t saved = _mm_getcsr();
    _mm_setcsr((unsigned)saved | 0x8040);
    return saved;
#elif defined(__aarch64__)
    uint64_t saved;
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved));
    __asm__ volatile("msr fpcr, %0" : : "r"(saved | (1ULL << 24)));
    return saved;
#else
    return 0;
#endif
}

INLINE void restore_denormals(uint64_t saved)
{
#if defined(__SSE2__)
    _mm_setcsr((unsigned)saved);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(saved));
#else
    (void)saved;
#endif
}

INLINE float half_to_float(uint16_t half)
{
    const uint32_t size = half & 0x7FFFu, sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t normal = (size << 13) + (size < 0x7C00u ? 0x38000000u : 0x70000000u); /* infinity and NaN stay so */
    const float small = (float)(int32_t)size * 0x1p-24f;
    uint32_t bits;
    memcpy(&bits, &small, 4);
    bits = (size < 0x400u ? bits : normal) | sign;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

/* How many of the sets below may be used: FOCALCAL_INSTRUCTION_SET in the environment names the last. */
extern int most_sets;

/* The names of this processor's instruction sets, best last; how many. */
INLINE int instruction_sets(const char **names)
{
    int count = 0;
    names[count++] = "baseline";
#if defined(__x86_64__)
    __builtin_cpu_init();
    static int half = -1; /* asked once: in a virtual machine CPUID takes microseconds */
    if (half < 0) {
        unsigned a, b, c = 0, d; /* the builtin knows of half precision (F16C) in new compilers alone */
        half = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
    }
    if (most_sets > 1 && half && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        names[count++] = "avx2";
    if (most_sets > 2 && count == 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        names[count++] = "avx512";
#endif
    return count;
}

/* Whether 512-bit units take some 20 us to power up, so that they pay from a number of elements on. */
INLINE int wakes_slowly(void)
{
#if defined(__x86_64__)
    return !__builtin_cpu_is("amd");
#else
    return 0;
#endif
}

/* The number of the set to use for so many elements, if none is wanted in particular. */
INLINE int chosen_set(int64_t wanted, int64_t elements, int64_t widest_from)
{
    const char *names[3];
    const int sets = instruction_sets(names), widest = sets - 1;
    if (wanted >= 0 && wanted < sets)
        return (int)wanted;
    return widest == 2 && elements < widest_from && wakes_slowly() ? widest - 1 : widest;
}
