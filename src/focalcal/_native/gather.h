/* Rows to lanes, for score_pass.c. */

/* The classes of count rows to a scratch block with one row of lanes for each class; the lanes left over repeat
 * the first row. Compiled for the baseline alone: wider sets tempt compilers into slow scatter instructions. */
#define GATHER(REAL)                                                                              \
    for (int64_t l = 0; l < lanes; l++) {                                                         \
        const REAL *x = (const REAL *)p->scores + offset_of(p, first + (l < count ? l : 0));      \
        REAL *to = (REAL *)scratch + l;                                                           \
        for (int64_t k = 0; k < p->classes; k++)                                                  \
            to[k * lanes] = x[k * stride];                                                        \
    }

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define HAS_SHUFFLE
#endif
#endif

#ifdef HAS_SHUFFLE
typedef float Four __attribute__((vector_size(16), aligned(4), may_alias));

/* Rows of at least four contiguous floats, four by four; the last square ends at the last class. */
INLINE void transpose(const Pass *p, int64_t first, float *scratch, int64_t lanes)
{
    const int64_t step = p->strides[2];
    for (int64_t l = 0; l < lanes; l += 4) {
        const float *row = (const float *)p->scores + (first + l) * step;
        __builtin_prefetch((const char *)row + AHEAD);
        __builtin_prefetch((const char *)row + AHEAD + 64);
        __builtin_prefetch((const char *)row + AHEAD + 128);
        for (int64_t k = 0; k < p->classes; k += 4) {
            const int64_t from = k + 4 <= p->classes ? k : p->classes - 4;
            const Four a = *(const Four *)(row + from), b = *(const Four *)(row + step + from);
            const Four c = *(const Four *)(row + 2 * step + from), d = *(const Four *)(row + 3 * step + from);
            const Four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
            const Four cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
            float *to = scratch + from * lanes + l;
            *(Four *)to = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
            *(Four *)(to + lanes) = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
            *(Four *)(to + 2 * lanes) = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
            *(Four *)(to + 3 * lanes) = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
        }
    }
}
#endif

static __attribute__((noinline)) void gather(const Pass *p, int64_t first, int64_t count, void *scratch, int64_t lanes)
{
    const int64_t stride = p->strides[1];
#ifdef HAS_SHUFFLE
    if (p->dtype == FLOAT32 && stride == 1 && p->outer == 1 && count == lanes && lanes % 4 == 0 && p->classes >= 4) {
        transpose(p, first, (float *)scratch, lanes);
        return;
    }
#endif
    if (p->dtype == FLOAT64)
        GATHER(double)
    else
        GATHER(float)
}
