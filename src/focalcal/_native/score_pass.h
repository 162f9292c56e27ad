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

/* By 16-byte parts, which every instruction set adds and compares at once, then within the last one. */
INLINE double ISA(sum_of)(vd v)
{
    const Pair *parts = (const Pair *)&v;
    Pair sum = parts[0];
    for (size_t i = 1; i < VECTOR_BYTES / 16; i++)
        sum += parts[i];
    return sum[0] + sum[1];
}

INLINE double ISA(largest_of)(vd v)
{
    const Pair *parts = (const Pair *)&v;
    Pair top = parts[0];
    for (size_t i = 1; i < VECTOR_BYTES / 16; i++) {
        const PairMask larger = parts[i] > top;
        top = (Pair)(((PairMask)parts[i] & larger) | ((PairMask)top & ~larger));
    }
    return top[0] > top[1] ? top[0] : top[1];
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

/* The same with the number of each lane, counted from a number on. */
INLINE int64_t ISA(compress_from)(vd v, vl mask, int32_t first, double *to, int32_t *numbers)
{
#if defined(__x86_64__) && VECTOR_BYTES == 64
    const __m256i lanes = _mm256_add_epi32(_mm256_set1_epi32(first), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    _mm256_storeu_si256((__m256i *)numbers, _mm256_maskz_compress_epi32((__mmask8)BITS_PD(mask), lanes));
    return ISA(compress)(v, mask, to);
#else
    int64_t n = 0;
    for (int32_t l = 0; l < WIDTH; l++) {
        to[n] = v[l], numbers[n] = first + l;
        n -= mask[l];
    }
    return n;
#endif
}

/* Blocks to sums: checks, bins, loss. Returns 0 after the first bad row. */
static int ISA(finish)(const Pass *p, Block *b, int64_t begin, int64_t count, Sums *s)
{
    const double tolerance = p->tolerance, least = p->least;
    const vd zero = {0};
    vd farthest = zero;
    vl bad = {0};
    for (int64_t i = 0; i < count; i += WIDTH) { /* a NaN is neither >= least nor near one */
        const vl label = *(vl *)(b->label + i), looked_at = label != -1;
        const vd off = *(vd *)(b->total + i) - 1.0, miss = (vd)((vl)MAX_PD(off, -off) & looked_at);
        bad |= looked_at & ~((*(vd *)(b->lowest + i) >= least) & (miss <= tolerance) & (label >= 0));
        farthest = MAX_PD(miss, farthest);
    }
    if (BITS_PD(bad)) {
        int64_t i = 0;
        while (b->label[i] == -1 || (b->lowest[i] >= least && fabs(b->total[i] - 1) <= tolerance && b->label[i] >= 0))
            i++;
        s->bad = begin + i;
        return 0;
    }
    s->totals[MISS] = fmax(s->totals[MISS], ISA(largest_of)(farthest));
    if ((p->want & WANT_NLL) && !p->logits) {
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
    int64_t counted[BLOCK], *tally = s->tally;
    double *confidence = s->confidence;
    for (int64_t i = 0; i < BLOCK; i++)
        counted[i] = b->label[i] < 0 ? 0 : 1 | (int64_t)b->correct[i] << 32;
    for (int64_t i = 0; i < BLOCK; i += 2) { /* what lies after the last row is not counted */
        tally[2 * b->bin[i]] += counted[i], confidence[2 * b->bin[i]] += b->top[i];
        tally[2 * b->bin[i + 1] + 1] += counted[i + 1], confidence[2 * b->bin[i + 1] + 1] += b->top[i + 1];
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
    if (p->confidence && (p->dtype == FLOAT64 || p->logits))
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

#define CONVERT(REAL)                                  \
    for (int64_t j = 0; j < count; j++)                \
        to[j * apart] = (double)((const REAL *)p->scores)[at + j * step];

/* Count scores from an element on, step apart, to doubles. */
INLINE void ISA(convert)(const Pass *p, int64_t at, int64_t step, int64_t count, double *to, int64_t apart)
{
    float wide[256];
    if (p->dtype == FLOAT64) {
        CONVERT(double)
    } else if (p->dtype == FLOAT32) {
        CONVERT(float)
    } else if (step == 1) {
        for (int64_t from = 0; from < count; from += 256) {
            const int64_t part = count - from < 256 ? count - from : 256;
            ISA(widen)((const uint16_t *)p->scores + at + from, FLOAT16, part, wide);
            for (int64_t j = 0; j < part; j++)
                to[(from + j) * apart] = wide[j];
        }
    } else {
        for (int64_t j = 0; j < count; j++)
            to[j * apart] = half_to_float(((const uint16_t *)p->scores)[at + j * step]);
    }
}

/* A row of contiguous classes as probabilities in double; of logits the loss as well. */
static __attribute__((noinline)) const double *ISA(convert_row)(const Pass *p, int64_t row, int64_t i, Block *b,
                                                                double *scratch)
{
    const int64_t K = p->classes, full = K - K % WIDTH, y = b->label[i];
    ISA(convert)(p, offset_of(p, row), 1, K, scratch, 1);
    if (!p->logits)
        return scratch;
    vd top = (vd){0} - INFINITY, total = {0};
    for (int64_t k = 0; k < full; k += WIDTH)
        top = MAX_PD(*(vd *)(scratch + k), top);
    double largest = ISA(largest_of)(top);
    for (int64_t k = full; k < K; k++)
        largest = scratch[k] > largest ? scratch[k] : largest;
    for (int64_t k = K; k < full + WIDTH; k++)
        scratch[k] = -INFINITY; /* what a vector beyond the end holds weighs nothing */
    const double own = y < 0 ? 0 : scratch[y] - largest;
    for (int64_t k = 0; k < K; k += WIDTH) {
        const vd e = ISA(exp_double)(*(vd *)(scratch + k) - largest);
        *(vd *)(scratch + k) = e;
        total += e;
    }
    const double sum = ISA(sum_of)(total), inverse = 1 / sum;
    for (int64_t k = 0; k < K; k += WIDTH)
        *(vd *)(scratch + k) *= inverse;
    b->loss[i] = log(sum) - own;
    return scratch;
}

/* Rows as probabilities in double, one row of lanes for each class; the lanes left over repeat the first row. */
static __attribute__((noinline)) void ISA(convert_lanes)(const Pass *p, int64_t start, int64_t i, int64_t count,
                                                         int64_t lanes, Block *b, double *scratch)
{
    const int64_t K = p->classes, first = start + i, position = p->outer == 1 ? first : first % p->inner;
    if (p->strides[2] == 1 && position + count <= p->inner) {
        for (int64_t k = 0; k < K; k++)
            ISA(convert)(p, offset_of(p, first) + k * p->strides[1], 1, count, scratch + k * lanes, 1);
    } else {
        for (int64_t l = 0; l < count; l++)
            ISA(convert)(p, offset_of(p, first + l), p->strides[1], K, scratch + l, lanes);
    }
    for (int64_t l = count; l < lanes; l++)
        for (int64_t k = 0; k < K; k++)
            scratch[k * lanes + l] = scratch[k * lanes];
    for (int64_t l = 0; p->logits && l < lanes; l += WIDTH) {
        vd *z = (vd *)(scratch + l), top = *z, total = {0}, own = {0};
        const int64_t step = lanes / WIDTH;
        for (int64_t k = 1; k < K; k++)
            top = MAX_PD(z[k * step], top);
        for (int64_t j = 0; j < WIDTH; j++)
            own[j] = b->label[i + l + j] < 0 ? top[j] : scratch[b->label[i + l + j] * lanes + l + j];
        for (int64_t k = 0; k < K; k++) {
            z[k * step] = ISA(exp_double)(z[k * step] - top);
            total += z[k * step];
        }
        const vd inverse = 1.0 / total;
        for (int64_t k = 0; k < K; k++)
            z[k * step] *= inverse;
        *(vd *)(b->loss + i + l) = ISA(log)(total, total - 1.0) - (own - top);
    }
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
    const int contiguous = p->strides[1] == 1 && p->classes >= ROWS_FROM, wide = p->dtype == FLOAT64 || p->converts;
    double *lane_first = scratch + p->classes * lanes_at_once(p, 8);
    memset(lane_first, 0, (size_t)p->classes * 8 * sizeof(double));
    for (int64_t start = begin; start < end; start += BLOCK) {
        const int64_t count = end - start < BLOCK ? end - start : BLOCK;
        read_labels(p, start, count, b.label);
        const uint64_t saved = flush_denormals();
        if (wide)
            (contiguous ? ISA(rows_double) : ISA(lanes_double))(p, start, count, &b, s, scratch);
        else
            (contiguous ? ISA(rows_float) : ISA(lanes_float))(p, start, count, &b, s, scratch);
        restore_denormals(saved);
        if (!p->converts) {
            read_own(p, start, b.label, b.own); /* only now: a denormal p_y is no zero to the logarithm */
            judge(p, start, &b);
        }
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
#undef CONVERT
#undef vf
#undef vd
#undef vi
#undef vl
