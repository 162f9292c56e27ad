/* Vectors, exp and log, for whichever instruction set each_instruction_set.h has switched the compiler to. */

#define vf ISA(vector_float)
#define vd ISA(vector_double)
#define vi ISA(vector_int32)
#define vl ISA(vector_int64)

typedef float vf __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef double vd __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef int32_t vi __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef int64_t vl __attribute__((vector_size(VECTOR_BYTES), may_alias));

typedef float ISA(loose_float) __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef double ISA(loose_double) __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));

/* Numbers of half the width, float16 or bfloat16, to floats; exact. */
INLINE void ISA(widen)(const uint16_t *from, int dtype, int64_t count, float *to)
{
    int64_t i = 0;
    if (dtype == BFLOAT16) {
        for (; i < count; i++) {
            const uint32_t bits = (uint32_t)from[i] << 16;
            memcpy(to + i, &bits, 4);
        }
        return;
    }
#if defined(__x86_64__) && VECTOR_BYTES == 64
    for (; i + 16 <= count; i += 16)
        _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(from + i))));
#elif defined(__x86_64__) && VECTOR_BYTES == 32
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
#endif
    for (; i < count; i++)
        to[i] = half_to_float(from[i]);
}

/* exp(x) for x <= 0. Exactly 0 below the smallest normal number; NaN stays NaN, because the result
 * is a product with the polynomial rather than a sum of exponent bits. Relative error 1.1e-7. */
INLINE vf ISA(exp_float)(vf x)
{
    /* Adding 1.5 * 2^23 rounds to an integer in the low bits; 127 more makes it a biased exponent. */
    const float magic = 12582912.0f + 127.0f;
    const vf zero = {0};
    vf clamped = MAX_PS(zero - 88.03f, x); /* -88.03 gives 2^-127, whose bit pattern is 0 */
    vf shifted = clamped * 1.44269504f + magic;
    vf n = shifted - magic;
    vf r = clamped - n * 0.693145752f;
    r = r - n * 1.42860677e-6f;
    vf p = zero + 1.392625083e-3f;
    p = p * r + 8.363232884e-3f;
    p = p * r + 4.166655421e-2f;
    p = p * r + 1.666657667e-1f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    return p * (vf)((vi)shifted << 23);
}

/* exp(min(x, 709)), to 1 ulp or so: Taylor's series on [-ln2/2, ln2/2]. */
INLINE vd ISA(exp_double)(vd x)
{
    const double magic = 6755399441055744.0; /* 1.5 * 2^52 */
    const vd zero = {0};
    vd clamped = MAX_PD(zero - 708.9, x); /* below: 2^-1023, whose bit pattern is 0 */
    clamped = -MAX_PD(zero - 709.0, -clamped);
    vd shifted = clamped * 1.4426950408889634 + magic;
    vd n = shifted - magic;
    vd r = clamped - n * 6.93147180369123816490e-01;
    r = r - n * 1.90821492927058770002e-10;
    vd p = zero + 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * (r * r) + r;
    p = p + 1.0;
    vl exponent = ((vl)shifted - 0x4338000000000000LL + 1023) << 52;
    return p * (vd)exponent;
}

INLINE vd ISA(select)(vl mask, vd yes, vd no)
{
    return (vd)((mask & (vl)yes) | (~mask & (vl)no));
}

/* log(x) for normal x > 0, given x - 1 as well: where x is the rounded 1 + t, passing t gives log1p(t).
 * log m = 2 atanh((m - 1) / (m + 1)) for the mantissa m in [sqrt(1/2), sqrt(2)). */
INLINE vd ISA(log)(vd x, vd minus_one)
{
    const vd zero = {0};
    vl shifted = (vl)x - 0x3FE6A09E667F3BCDLL; /* bits of sqrt(1/2) */
    vl n = shifted >> 52;
    vd m = (vd)((vl)x - (n << 52));
    vd f = ISA(select)(n == 0, minus_one, m - 1.0);
    vd s = f / (f + 2.0);
    vd w = s * s;
    vd p = zero + 2.0 / 21.0;
    p = p * w + 2.0 / 19.0;
    p = p * w + 2.0 / 17.0;
    p = p * w + 2.0 / 15.0;
    p = p * w + 2.0 / 13.0;
    p = p * w + 2.0 / 11.0;
    p = p * w + 2.0 / 9.0;
    p = p * w + 2.0 / 7.0;
    p = p * w + 2.0 / 5.0;
    p = p * w + 2.0 / 3.0;
    p = p * w + 2.0;
    vd exponent = __builtin_convertvector(n, vd);
    /* A NaN's bits give a meaningless n and a mantissa that is a number: x * 0 brings it back. */
    return exponent * 6.93147180559945286e-01 + s * p + x * 0.0;
}
