/* The pass over the rows, compiled once for each instruction set by each_instruction_set.h. Two ways:
 *     rows    classes contiguous: the lanes of a vector are classes of one row
 *     lanes   few classes or other strides: the lanes are rows
 * Both fill blocks of rows, which finish() turns into sums. */
#include "vector_math.h"

#define WIDTH ((int64_t)(VECTOR_BYTES / 8))
#define narrow ISA(narrow_float)
#define vu ISA(unaligned_double)
#define ni ISA(narrow_int)
typedef float narrow __attribute__((vector_size(VECTOR_BYTES / 2), aligned(4), may_alias));
typedef int32_t ni __attribute__((vector_size(VECTOR_BYTES / 2), aligned(4), may_alias));
typedef double vu __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));

/* WIDTH scores from the address, as doubles. */
#define WIDE(address) \
    (sizeof(REAL) == 8 ? (vd) * (const vu *)(address) : __builtin_convertvector(*(const narrow *)(address), vd))

INLINE double ISA(sum_of)(vd v)
{
    double sum = 0;
    for (int64_t l = 0; l < WIDTH; l++)
        sum += v[l];
    return sum;
}

INLINE double ISA(largest_of)(vd v)
{
    double top = v[0];
    for (int64_t l = 1; l < WIDTH; l++)
        top = v[l] > top ? v[l] : top;
    return top;
}

/* The lanes of the mask, one after another, to an address with room for all lanes; how many. */
INLINE int64_t ISA(compress)(vd v, vl mask, double *to)
{
#if defined(__x86_64__) && VECTOR_BYTES == 64
    const __mmask8 bits = (__mmask8)BITS_PD(mask);
    _mm512_storeu_pd(to, _mm512_maskz_compress_pd(bits, (__m512d)v));
    return __builtin_popcount(bits);
#else
    int64_t n = 0;
    for (int64_t l = 0; l < WIDTH; l++) { /* without a branch, which would be mispredicted */
        to[n] = v[l];
        n -= mask[l];
    }
    return n;
#endif
}

/* Blocks to sums: checks, bins, loss. Returns 0 after the first bad row. */
static int ISA(finish)(const Pass *p, Block *b, int64_t begin, int64_t count, Sums *s)
{
    const double tolerance = p->tolerance, least = p->least;
    double farthest = s->totals[MISS];
    int bad = 0;
    for (int64_t i = 0; i < count; i++) { /* a NaN is neither >= least nor near one */
        const double miss = b->label[i] == -1 ? 0 : fabs(b->total[i] - 1);
        bad |= b->label[i] != -1 && !(b->lowest[i] >= least && miss <= tolerance && b->label[i] >= 0);
        farthest = miss > farthest ? miss : farthest;
    }
    if (bad) {
        int64_t i = 0;
        while (b->label[i] == -1 || (b->lowest[i] >= least && fabs(b->total[i] - 1) <= tolerance && b->label[i] >= 0))
            i++;
        s->bad = begin + i;
        return 0;
    }
    s->totals[MISS] = farthest;
    if (p->want & WANT_NLL) {
        for (int64_t i = 0; i < count; i += WIDTH) {
            const vd own = *(vd *)(b->own + i);
            *(vd *)(b->loss + i) = -ISA(log)(own, own - 1.0);
        }
        for (int64_t i = 0; i < count; i++)
            if (b->own[i] < 2.2250738585072014e-308) /* the vector's log wants normal numbers */
                b->loss[i] = b->own[i] > 0 ? -log(b->own[i]) : INFINITY;
    }
    double brier = 0, nll = 0;
    for (int64_t i = 0; i < BLOCK; i++) /* an ignored row may hold anything */
        b->top[i] = b->label[i] < 0 ? 0 : b->top[i];
    bins_of(b->top, p->edges, p->bins, b->bin);
    for (int64_t i = 0; i < count; i++) {
        const int64_t counted = b->label[i] >= 0, cell = 2 * b->bin[i] + (i & 1);
        s->tally[cell] += counted | (int64_t)(b->correct[i] & counted) << 32;
        s->confidence[cell] += b->top[i];
    }
    if (p->want & (WANT_BRIER | WANT_NLL))
        for (int64_t i = 0; i < count; i++) {
            const double rest = 1 - b->own[i], squares = b->squares[i] - b->own[i] * b->own[i];
            b->squares[i] = rest * rest + (squares > 0 ? squares : 0);
            brier += b->label[i] < 0 ? 0 : b->squares[i];
            nll += b->label[i] < 0 ? 0 : b->loss[i];
        }
    if (p->want & WANT_BRIER)
        s->totals[BRIER_SUM] += brier;
    if (p->want & WANT_NLL)
        s->totals[NLL_SUM] += nll;
    if (p->want & WANT_CLASSES) {
        bins_of(b->own, p->edges, p->bins, b->bin);
        for (int64_t i = 0; i < count; i++)
            if (b->label[i] >= 0)
                s->class_correct[b->label[i] * p->bins + b->bin[i]] += 1;
    }
    if (p->confidence && p->dtype == FLOAT64)
        memcpy((double *)p->confidence + begin, b->top, (size_t)count * 8);
    else if (p->confidence)
        for (int64_t i = 0; i < count; i++)
            ((float *)p->confidence)[begin + i] = (float)b->top[i];
    if (p->correct)
        memcpy(p->correct + begin, b->correct, (size_t)count);
    if (p->nll)
        memcpy(p->nll + begin, b->loss, (size_t)count * 8);
    if (p->brier)
        memcpy(p->brier + begin, b->squares, (size_t)count * 8);
    return 1;
}

/* REAL = float and double. */
#define REAL float
#define TYPED(name) ISA(name##_float)
#include "score_rows.h"
#define REAL double
#define TYPED(name) ISA(name##_double)
#include "score_rows.h"

/* Rows begin .. end, added to the sums. scratch holds scratch_doubles(p). */
static void ISA(scan)(const Pass *p, int64_t begin, int64_t end, Sums *s, double *scratch)
{
    Block b;
    memset(&b, 0, sizeof b);
    const int contiguous = p->strides[1] == 1 && p->classes >= ROWS_FROM;
    double *lane_first = scratch + p->classes * lanes_at_once(p, 8);
    memset(lane_first, 0, (size_t)p->classes * 8 * sizeof(double));
    for (int64_t start = begin; start < end; start += BLOCK) {
        const int64_t count = end - start < BLOCK ? end - start : BLOCK;
        read_labels(p, start, count, b.label);
        const uint64_t saved = flush_denormals();
        if (p->dtype == FLOAT64)
            (contiguous ? ISA(rows_double) : ISA(lanes_double))(p, start, count, &b, s, scratch);
        else
            (contiguous ? ISA(rows_float) : ISA(lanes_float))(p, start, count, &b, s, scratch);
        restore_denormals(saved);
        read_own(p, start, b.label, b.own); /* only now: a denormal p_y is no zero to the logarithm */
        judge(p, start, &b);
        if (!ISA(finish)(p, &b, start, count, s))
            break;
        if ((start - begin) % SETTLE_EVERY == SETTLE_EVERY - BLOCK)
            settle(p, s);
    }
    settle(p, s);
    for (int64_t k = 0; k < (p->want & WANT_CLASSES ? p->classes : 0); k++)
        for (int64_t l = 0; l < 8; l++)
            s->first[k] += lane_first[k * 8 + l];
}

/* Sums over bins of 1, f, a, f^2 and f a, for confidences f and correctness a; out is (MOMENTS, bins). */
static int ISA(add_moments)(const void *confidence, int dtype, const uint8_t *correct, int64_t count,
                            const double *edges, int64_t bins, int even, double *out)
{
    double *sums = calloc((size_t)bins * MOMENTS, sizeof(double)); /* a bin's sums side by side */
    if (!sums)
        return -1;
    for (int64_t i = 0; i < count; i++) {
        const double f = dtype == FLOAT64 ? ((const double *)confidence)[i] : (double)((const float *)confidence)[i];
        int64_t b = 0;
        if (even) {
            b = bin_of(f, edges, bins);
        } else if (bins <= 64) { /* how many inner edges lie below f, without a branch */
            for (int64_t j = 1; j < bins; j++)
                b += f > edges[j];
        } else {
            int64_t above = bins - 1;
            while (b < above) {
                const int64_t middle = (b + above) / 2;
                if (f > edges[middle + 1])
                    b = middle + 1;
                else
                    above = middle;
            }
        }
        double *s = sums + b * MOMENTS;
        const double a = correct[i] ? 1 : 0;
        s[0] += 1, s[1] += f, s[2] += a, s[3] += f * f, s[4] += f * a;
    }
    for (int64_t b = 0; b < bins; b++)
        for (int64_t m = 0; m < MOMENTS; m++)
            out[m * bins + b] += sums[b * MOMENTS + m];
    free(sums);
    return 0;
}

#undef WIDTH
#undef narrow
#undef vu
#undef ni
#undef WIDE
#undef vf
#undef vd
#undef vi
#undef vl
