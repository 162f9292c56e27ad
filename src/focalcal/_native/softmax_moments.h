/* Rows' sums of exponentials, compiled for REAL = float and double. Two ways:
 *     rows    the lanes of a vector are classes of one row
 *     lanes   few classes: the lanes are rows */

#define LANES ((int64_t)(VECTOR_BYTES / sizeof(REAL)))

/* s = z - max z of a row, subtracted in the wider of the two types, and zeros after its end. Returns the label's s. */
INLINE double TYPED(shifted)(const Rows *p, int64_t row, REAL *s, float *wide)
{
    const int64_t K = p->classes, at = row * p->stride, y = p->labels ? p->labels[row] : -1;
    for (int64_t k = K; k < padded(K); k++)
        s[k] = 0;
    if (p->dtype == FLOAT64) {
        const double *x = (const double *)p->logits + at, top = ISA(largest_double)(x, K);
        for (int64_t k = 0; k < K; k++)
            s[k] = (REAL)(x[k] - top);
        return y < 0 ? 0 : x[y] - top;
    }
    const float *x = (const float *)p->logits + at;
    if (p->dtype != FLOAT32) {
        ISA(widen)((const uint16_t *)p->logits + at, p->dtype, K, wide);
        x = wide;
    }
    const float top = ISA(largest_float)(x, K);
    for (int64_t k = 0; k < K; k++)
        s[k] = (REAL)x[k] - (REAL)top;
    return y < 0 ? 0 : (double)x[y] - (double)top;
}

typedef struct {
    VEC total, first, second, third;
} TYPED(Powers);

INLINE void TYPED(add_powers)(TYPED(Powers) * sums, VEC s, VEC e)
{
    sums->total += e;
    e *= s, sums->first += e;
    e *= s, sums->second += e;
    e *= s, sums->third += e;
}

INLINE double TYPED(sum_of)(VEC v)
{
    double sum = 0;
    for (int64_t l = 0; l < LANES; l++)
        sum += (double)v[l];
    return sum;
}

/* Entry i of the block from a row. What weighs nothing is cut off, which keeps denormals and 0 * infinity out. */
static __attribute__((noinline)) void TYPED(row_moments)(const Rows *p, int64_t row, int64_t i, Block *b, void *scratch)
{
    const int64_t K = p->classes, full = K - K % LANES;
    const REAL lowest = (REAL)(LOWEST / p->b), slope = (REAL)p->b;
    const VEC zero = {0}, floor = zero + lowest;
    REAL *shifted = scratch;
    IVEC lane;
    for (int64_t l = 0; l < LANES; l++)
        lane[l] = (INT)l;
    b->own[i] = TYPED(shifted)(p, row, shifted, (float *)((double *)scratch + padded(K)));
    double total = 0, first = 0, second = 0, third = 0;
    for (int64_t from = 0; from < K; from += FLUSH_EVERY) { /* long sums are added in double */
        TYPED(Powers) sums = {zero, zero, zero, zero};
        const int64_t to = from + FLUSH_EVERY < full ? from + FLUSH_EVERY : full;
        for (int64_t k = from; k < to; k += LANES) {
            const VEC s = MAX(floor, *(VEC *)(shifted + k));
            TYPED(add_powers)(&sums, s, EXP(s * slope));
        }
        if (full < K && from + FLUSH_EVERY > full) {
            const VEC s = MAX(floor, *(VEC *)(shifted + full));
            TYPED(add_powers)(&sums, s, (VEC)((IVEC)EXP(s * slope) & (lane < (INT)(K - full))));
        }
        total += TYPED(sum_of)(sums.total), first += TYPED(sum_of)(sums.first);
        second += TYPED(sum_of)(sums.second), third += TYPED(sum_of)(sums.third);
    }
    b->total[i] = total, b->first[i] = first, b->second[i] = second, b->third[i] = third;
}

/* A block of rows of few classes. */
static __attribute__((noinline)) void TYPED(lane_moments)(const Rows *p, int64_t start, int64_t count, Block *b,
                                                          void *scratch)
{
    const REAL lowest = (REAL)(LOWEST / p->b), slope = (REAL)p->b;
    const VEC zero = {0}, floor = zero + lowest;
    double *wide = scratch;
    REAL *shifted = (REAL *)(wide + ROWS_FROM * BLOCK);
    ISA(shifted_block)(p, start, count, wide, b);
    for (int64_t i = 0; i < p->classes * BLOCK; i++)
        shifted[i] = (REAL)wide[i];
    for (int64_t i = 0; i < BLOCK; i += LANES) {
        TYPED(Powers) sums = {zero, zero, zero, zero};
        for (int64_t k = 0; k < p->classes; k++) {
            const VEC s = MAX(floor, *(VEC *)(shifted + k * BLOCK + i));
            TYPED(add_powers)(&sums, s, EXP(s * slope));
        }
        for (int64_t l = 0; l < LANES; l++) {
            b->total[i + l] = (double)sums.total[l], b->first[i + l] = (double)sums.first[l];
            b->second[i + l] = (double)sums.second[l], b->third[i + l] = (double)sums.third[l];
        }
    }
}

#undef LANES
#undef REAL
#undef VEC
#undef IVEC
#undef INT
#undef MAX
#undef EXP
#undef LOWEST
#undef TYPED
