/* Includes KERNEL, a file, once for each instruction set, with
 *     ISA(name)       the name with the instruction set's suffix: _baseline, _avx2, _avx512
 *     VECTOR_BYTES    16, 32 or 64
 *     MAX_PS, MAX_PD  max(a, b) that returns b when either operand is NaN; MIN_PD the same for the least
 *     BITS_PD         one bit for each true lane of a comparison of doubles
 * so that one build serves every machine; the best set the processor has is chosen at run time. */

#define ISA(name) name##_baseline
#define VECTOR_BYTES 16
#if defined(__SSE2__)
#define MAX_PS(a, b) ((vf)_mm_max_ps((__m128)(a), (__m128)(b)))
#define MAX_PD(a, b) ((vd)_mm_max_pd((__m128d)(a), (__m128d)(b)))
#define MIN_PD(a, b) ((vd)_mm_min_pd((__m128d)(a), (__m128d)(b)))
#define BITS_PD(mask) ((unsigned)_mm_movemask_pd((__m128d)(mask)))
#else
#define MAX_PS(a, b) ((vf)((((vi)(a)) & (vi)((a) > (b))) | ((vi)(b) & ~(vi)((a) > (b)))))
#define MAX_PD(a, b) ((vd)((((vl)(a)) & (vl)((a) > (b))) | ((vl)(b) & ~(vl)((a) > (b)))))
#define MIN_PD(a, b) ((vd)((((vl)(a)) & (vl)((a) < (b))) | ((vl)(b) & ~(vl)((a) < (b)))))
#define BITS_PD(mask) ((unsigned)(((mask)[0] & 1) | ((mask)[1] & 2)))
#endif
#include KERNEL
#undef ISA
#undef VECTOR_BYTES
#undef MAX_PS
#undef MAX_PD
#undef MIN_PD
#undef BITS_PD

#if defined(__x86_64__)
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif
#define ISA(name) name##_avx2
#define VECTOR_BYTES 32
#define MAX_PS(a, b) ((vf)_mm256_max_ps((__m256)(a), (__m256)(b)))
#define MAX_PD(a, b) ((vd)_mm256_max_pd((__m256d)(a), (__m256d)(b)))
#define MIN_PD(a, b) ((vd)_mm256_min_pd((__m256d)(a), (__m256d)(b)))
#define BITS_PD(mask) ((unsigned)_mm256_movemask_pd((__m256d)(mask)))
#include KERNEL
#undef ISA
#undef VECTOR_BYTES
#undef MAX_PS
#undef MAX_PD
#undef MIN_PD
#undef BITS_PD
#ifdef __clang__
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,prefer-vector-width=512")
#endif
#define ISA(name) name##_avx512
#define VECTOR_BYTES 64
#define MAX_PS(a, b) ((vf)_mm512_max_ps((__m512)(a), (__m512)(b)))
#define MAX_PD(a, b) ((vd)_mm512_max_pd((__m512d)(a), (__m512d)(b)))
#define MIN_PD(a, b) ((vd)_mm512_min_pd((__m512d)(a), (__m512d)(b)))
#define BITS_PD(mask) ((unsigned)_mm512_movepi64_mask((__m512i)(mask)))
#include KERNEL
#undef ISA
#undef VECTOR_BYTES
#undef MAX_PS
#undef MAX_PD
#undef MIN_PD
#undef BITS_PD
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

/* FUNCTIONS(name): the copies of one function, in the order of instruction_sets. */
#if defined(__x86_64__)
#define FUNCTIONS(name) {name##_baseline, name##_avx2, name##_avx512}
#else
#define FUNCTIONS(name) {name##_baseline, name##_baseline, name##_baseline}
#endif
