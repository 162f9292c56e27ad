/* The rows of softmax.c, compiled once for each instruction set by each_instruction_set.h. */
#include "vector_math.h"

#define LOOSE(address) (*(ISA(loose_double) *)(address))

INLINE double ISA(largest_double)(const double *x, int64_t count)
{
    const int64_t width = VECTOR_BYTES / 8;
    vd top = (vd){0} - INFINITY, top2 = top;
    int64_t k = 0;
    for (; k + 2 * width <= count; k += 2 * width) {
        top = MAX_PD((vd)LOOSE(x + k), top);
        top2 = MAX_PD((vd)LOOSE(x + k + width), top2);
    }
    top = MAX_PD(top, top2);
    double largest = top[0];
    for (int64_t l = 1; l < width; l++)
        largest = top[l] > largest ? top[l] : largest;
    for (; k < count; k++)
        largest = x[k] > largest ? x[k] : largest;
    return largest;
}

INLINE float ISA(largest_float)(const float *x, int64_t count)
{
    const int64_t width = VECTOR_BYTES / 4;
    vf top = (vf){0} - INFINITY, top2 = top;
    int64_t k = 0;
    for (; k + 2 * width <= count; k += 2 * width) {
        top = MAX_PS((vf)*(ISA(loose_float) *)(x + k), top);
        top2 = MAX_PS((vf)*(ISA(loose_float) *)(x + k + width), top2);
    }
    top = MAX_PS(top, top2);
    float largest = top[0];
    for (int64_t l = 1; l < width; l++)
        largest = top[l] > largest ? top[l] : largest;
    for (; k < count; k++)
        largest = x[k] > largest ? x[k] : largest;
    return largest;
}

/* Block to sums: of each row the log partition and the central moments, times its weight. */
static void ISA(add_block)(const Rows *p, int64_t begin, int64_t count, Block *b, double *sums)
{
    vd log_partition = {0}, mean_sum = {0}, variance_sum = {0}, third_sum = {0}, own_sum = {0};
    double weights[BLOCK] __attribute__((aligned(64)));
    for (int64_t i = 0; i < BLOCK; i++) /* what the block holds after its last row counts nothing */
        weights[i] = i >= count ? 0 : p->weights ? p->weights[begin + i] : 1;
    for (int64_t i = 0; i < count; i += VECTOR_BYTES / 8) {
        const vd weight = *(vd *)(weights + i), total = *(vd *)(b->total + i), inverse = 1.0 / total;
        const vd mean = *(vd *)(b->first + i) * inverse;
        const vd variance = *(vd *)(b->second + i) * inverse - mean * mean;
        const vd third = *(vd *)(b->third + i) * inverse - mean * (mean * mean + 3.0 * variance);
        log_partition += weight * ISA(log)(total, total - 1.0);
        mean_sum += weight * mean, variance_sum += weight * variance, third_sum += weight * third;
        own_sum += weight * *(vd *)(b->own + i);
    }
    for (int64_t l = 0; l < VECTOR_BYTES / 8; l++) {
        sums[LOG_PARTITION] += log_partition[l];
        sums[MEAN] += mean_sum[l], sums[VARIANCE] += variance_sum[l], sums[THIRD] += third_sum[l];
        sums[OWN] += own_sum[l];
    }
}

/* Of a block of rows s = z - max z, one row of lanes for each class; the lanes after the last repeat the first. */
static __attribute__((noinline)) void ISA(shifted_block)(const Rows *p, int64_t start, int64_t count, double *s, Block *b)
{
    const int64_t K = p->classes;
    float wide[ROWS_FROM];
    for (int64_t i = 0; i < BLOCK; i++) {
        const int64_t at = (start + (i < count ? i : 0)) * p->stride;
        if (p->dtype == FLOAT64) {
            for (int64_t k = 0; k < K; k++)
                s[k * BLOCK + i] = ((const double *)p->logits)[at + k];
            continue;
        }
        const float *x = (const float *)p->logits + at;
        if (p->dtype != FLOAT32) {
            ISA(widen)((const uint16_t *)p->logits + at, p->dtype, K, wide);
            x = wide;
        }
        for (int64_t k = 0; k < K; k++)
            s[k * BLOCK + i] = x[k];
    }
    for (int64_t i = 0; i < BLOCK; i += VECTOR_BYTES / 8) {
        vd top = *(vd *)(s + i);
        for (int64_t k = 1; k < K; k++)
            top = MAX_PD(*(vd *)(s + k * BLOCK + i), top);
        for (int64_t k = 0; k < K; k++)
            *(vd *)(s + k * BLOCK + i) -= top;
    }
    for (int64_t i = 0; p->labels && i < count; i++)
        b->own[i] = s[p->labels[start + i] * BLOCK + i];
}

#define REAL float
#define VEC vf
#define IVEC vi
#define INT int32_t
#define MAX MAX_PS
#define EXP ISA(exp_float)
#define LOWEST -80.0
#define TYPED(name) ISA(name##_float)
#include "softmax_moments.h"

#define REAL double
#define VEC vd
#define IVEC vl
#define INT int64_t
#define MAX MAX_PD
#define EXP ISA(exp_double)
#define LOWEST -690.0
#define TYPED(name) ISA(name##_double)
#include "softmax_moments.h"

static int64_t ISA(moments)(const void *problem, int64_t begin, int64_t end, double *sums, void *scratch)
{
    const Rows *p = problem;
    Block b;
    for (int64_t i = 0; i < BLOCK; i++)
        b.total[i] = 1, b.first[i] = b.second[i] = b.third[i] = b.own[i] = 0;
    for (int64_t start = begin; start < end; start += BLOCK) {
        const int64_t count = end - start < BLOCK ? end - start : BLOCK;
        for (int64_t i = 0; i < count; i++)
            if (wrong_label(p->labels, start + i, p->classes))
                return start + i;
        if (p->classes < ROWS_FROM)
            (p->exact ? ISA(lane_moments_double) : ISA(lane_moments_float))(p, start, count, &b, scratch);
        else
            for (int64_t i = 0; i < count; i++)
                (p->exact ? ISA(row_moments_double) : ISA(row_moments_float))(p, start + i, i, &b, scratch);
        ISA(add_block)(p, start, count, &b, sums);
    }
    return -1;
}

/* -log softmax(w x + c)_y of each row, times its weight, and the derivatives: sums holds the loss, those in c and, with
 * a diagonal w, those in w; without one, those in the scores take the scores' place. */
static int64_t ISA(affine)(const void *problem, int64_t begin, int64_t end, double *sums, void *scratch)
{
    const Affine *p = problem;
    const int64_t K = p->classes, width = VECTOR_BYTES / 8;
    double *e = scratch, *d_bias = e + padded(K), *d_weight = d_bias + padded(K), loss = 0;
    memset(scratch, 0, scratch_bytes(K));
    for (int64_t i = begin; i < end; i++) {
        if (wrong_label(p->labels, i, K))
            return i;
        double *x = p->scores + i * p->stride;
        if (p->weight)
            for (int64_t k = 0; k < K; k++)
                e[k] = x[k] * p->weight[k] + p->bias[k];
        else
            for (int64_t k = 0; k < K; k++)
                e[k] = x[k] + p->bias[k];
        const int64_t y = p->labels[i];
        const double top = ISA(largest_double)(e, K), own = e[y] - top;
        for (int64_t k = K; k < padded(K); k++)
            e[k] = -INFINITY;
        vd total = {0};
        for (int64_t k = 0; k < K; k += width) {
            const vd v = ISA(exp_double)(*(vd *)(e + k) - top);
            *(vd *)(e + k) = v;
            total += v;
        }
        double sum = 0;
        for (int64_t l = 0; l < width; l++)
            sum += total[l];
        const double row_weight = p->row_weights[i], scale = row_weight / sum;
        loss += row_weight * (log(sum) - own);
        const double at_label = e[y] * scale - row_weight;
        for (int64_t k = 0; k < K; k += width)
            *(vd *)(e + k) *= scale;
        e[y] = at_label;
        for (int64_t k = 0; k < K; k += width)
            *(vd *)(d_bias + k) += *(vd *)(e + k);
        if (p->weight)
            for (int64_t k = 0; k < K; k++)
                d_weight[k] += e[k] * x[k];
        else
            memcpy(x, e, (size_t)K * sizeof(double));
    }
    sums[0] = loss;
    memcpy(sums + 1, d_bias, (size_t)K * sizeof(double));
    if (p->weight)
        memcpy(sums + 1 + K, d_weight, (size_t)K * sizeof(double));
    return -1;
}

#undef LOOSE
#undef vf
#undef vd
#undef vi
#undef vl
