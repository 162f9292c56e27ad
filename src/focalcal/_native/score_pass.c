/* What calibration metrics are made of, in one pass over an array of probabilities: it is checked (finite, no entry
 * below least, summing to one within tolerance), and gives how far the rows' sums miss one at most, each row's
 * confidence and correctness, their sums over confidence bins, the same for every class against all others, the Brier
 * score and the negative log-likelihood.
 *
 * Bins are (lo, hi] with the first closed. Everything is computed in double. Of equal largest probabilities the
 * first class counts as predicted. Logits, and half precision, become probabilities in double on the way, a block of
 * rows at a time; logits are checked for NaN, +infinity and rows of -infinity alone, and give their own likelihood. */

#include "native.h"

/* AHEAD: how many bytes ahead to prefetch; processors do not look past a page by themselves. */
enum { BLOCK = 64, ROWS_FROM = 32, SPARSE_FROM = 256, AHEAD = 4096, SETTLE_EVERY = 1 << 30 };
enum { WANT_BRIER = 1, WANT_NLL = 2, WANT_CLASSES = 4 };
enum { ROWS, WRONG, BRIER_SUM, NLL_SUM, SUMMED, MISS = SUMMED, TOTALS }; /* MISS is a largest value, not a sum */
enum { MOMENTS = 5 };

/* Strides count elements, ordered (outer, class, inner); row r is outer index r / inner, inner index r % inner. */
typedef struct {
    const void *scores;
    const int64_t *labels; /* outer * inner, contiguous */
    const double *edges;   /* bins + 1, evenly spaced */
    int64_t strides[3];
    int64_t outer, classes, inner, bins;
    int64_t ignore_index;
    int ignores; /* whether there is an ignore_index: every number may be one, or a wrong label */
    int dtype, want;
    int logits, converts; /* whether the scores are logits, and whether a block of rows is converted to double */
    double tolerance, least;
    /* For each row, or NULL: in double for float64 and logits, else in float; bytes; doubles. */
    void *confidence;
    uint8_t *correct;
    double *nll, *brier;
} Pass;

/* A class's bin: count and sum, added to as one vector. */
typedef double Pair __attribute__((vector_size(16), aligned(16), may_alias));
typedef int64_t PairMask __attribute__((vector_size(16), aligned(16), may_alias));

/* What one thread adds up. */
typedef struct {
    double totals[TOTALS];
    /* Rows alternate between 2 * bins, so that equal bins do not wait for one another; a tally holds the count in its
     * lower half and how many were right in the upper one, until settle() adds them to count and right (bins each). */
    int64_t *tally;
    double *confidence, *count, *right;
    Pair *classes;         /* classes * bins: count and sum */
    double *first;         /* for each class what else its first bin sums to; its count is what is left */
    double *class_correct; /* classes * bins */
    int64_t bad;           /* the first row that holds no probabilities or a wrong label, or -1 */
    void *memory;
} Sums;

/* Up to BLOCK rows on their way; second is the second largest, or the largest where that is not known. loss is made
 * last, or of logits first. */
typedef struct {
    double top[BLOCK], second[BLOCK], total[BLOCK], lowest[BLOCK], squares[BLOCK], own[BLOCK], loss[BLOCK];
    int64_t label[BLOCK]; /* -1: ignored, -2: bad */
    int32_t bin[BLOCK];
    uint8_t correct[BLOCK];
} __attribute__((aligned(64))) Block;

INLINE void read_labels(const Pass *p, int64_t start, int64_t count, int64_t *label)
{
    const int64_t *labels = p->labels + start, ignore = p->ignore_index, ignores = p->ignores, classes = p->classes;
    for (int64_t i = 0; i < count; i++) {
        const int64_t y = labels[i], checked = (y < 0) | (y >= classes) ? -2 : y;
        label[i] = ignores & (y == ignore) ? -1 : checked;
    }
    for (int64_t i = count; i < BLOCK; i++)
        label[i] = -1;
}

INLINE int64_t offset_of(const Pass *p, int64_t r)
{
    return p->outer == 1 ? r * p->strides[2] : r / p->inner * p->strides[0] + r % p->inner * p->strides[2];
}

/* p_y of a block's rows, 1 where there is no label; without a branch where rows are evenly spaced. */
#define READ_OWN                                                                                           \
    for (int64_t i = 0; one && i < BLOCK; i++) {                                                           \
        const int64_t y = label[i], row = y < 0 ? start : start + i;                                       \
        const double value = x[row * row_step + (y < 0 ? 0 : y) * class_step];                             \
        own[i] = y < 0 ? 1 : value;                                                                        \
    }                                                                                                      \
    for (int64_t i = 0; !one && i < BLOCK; i++)                                                            \
        own[i] = label[i] < 0 ? 1 : x[offset_of(p, start + i) + label[i] * class_step];

INLINE void read_own(const Pass *p, int64_t start, const int64_t *label, double *own)
{
    const int64_t one = p->outer == 1, row_step = p->strides[2], class_step = p->strides[1];
    if (p->dtype == FLOAT64) {
        const double *x = p->scores;
        READ_OWN
    } else {
        const float *x = p->scores;
        READ_OWN
    }
}

/* The bin (lo, hi] of a value: near value * bins, and exactly by the edges. */
INLINE int64_t bin_of(double value, const double *edges, int64_t bins)
{
    const double near = value * (double)bins;
    int64_t b = near >= (double)bins ? bins - 1 : near > 0 ? (int64_t)near : 0;
    b -= b > 0 && value <= edges[b];
    b += b < bins - 1 && value > edges[b + 1];
    return b;
}

/* Whether the label's probability is the largest, and the first of equal ones. */
INLINE void judge(const Pass *p, int64_t start, Block *b)
{
    int ties = 0;
    for (int64_t i = 0; i < BLOCK; i++) {
        b->correct[i] = b->own[i] == b->top[i];
        ties |= (b->second[i] == b->top[i]) & (b->top[i] <= 0.51); /* above a half no other class is as large */
    }
    for (int64_t i = 0; ties && i < BLOCK; i++) {
        if (!b->correct[i] || b->second[i] != b->top[i] || b->top[i] > 0.51 || b->label[i] < 0)
            continue;
        const int64_t at = offset_of(p, start + i);
        for (int64_t k = 0; k < b->label[i]; k++) {
            const int64_t other = at + k * p->strides[1];
            if (b->top[i] == (p->dtype == FLOAT64 ? ((const double *)p->scores)[other] : ((const float *)p->scores)[other]))
                b->correct[i] = 0;
        }
    }
}

/* The same for row i of the block, whose converted probabilities are stride apart. */
INLINE void judge_converted(const double *probs, int64_t stride, int64_t i, Block *b)
{
    const int64_t y = b->label[i];
    b->own[i] = y < 0 ? 1 : probs[y * stride];
    b->correct[i] = b->own[i] == b->top[i];
    for (int64_t k = 0; b->correct[i] && b->second[i] == b->top[i] && b->top[i] <= 0.51 && k < y; k++)
        if (probs[k * stride] == b->top[i])
            b->correct[i] = 0;
}

/* Rows that are gathered at once: a block, where its classes stay in the first-level cache. */
INLINE int64_t lanes_at_once(const Pass *p, int64_t width)
{
    return p->classes <= 64 ? BLOCK : width;
}

/* Working memory of one thread: gathered rows; for each class 8 lanes of its first bin; a list of 16 probabilities
 * above it and, as half-words, of their classes, each with room for a vector beyond the end. */
INLINE size_t scratch_doubles(const Pass *p)
{
    return (size_t)(p->classes * (lanes_at_once(p, 8) + 8 + 16 + 8) + 16);
}

/* The bins of a block of values: truncation is exact unless a value is within rounding of an edge. */
INLINE void bins_of(const double *values, const double *edges, int64_t bins, int32_t *at)
{
    const double scale = (double)bins, last = (double)(bins - 1);
    int close = 0;
    for (int i = 0; i < BLOCK; i++) {
        double near = values[i] * scale;
        const double edge = (double)(int32_t)(near + 0.5);
        close |= (fabs(near - edge) <= 1e-14 * scale) & (near < last + 0.5); /* a confidence of 1 is common, and last */
        near = near > last ? last : near;
        at[i] = (int32_t)(near > 0 ? near : 0);
    }
    for (int i = 0; close && i < BLOCK; i++)
        at[i] = (int32_t)bin_of(values[i], edges, bins);
}

/* What lies above it is rare, and is put into its bin one by one. */
INLINE double first_edge(const Pass *p)
{
    return p->bins > 1 ? p->edges[1] : INFINITY;
}

/* Empty the tallies, before their halves can overflow and at the end. */
INLINE void settle(const Pass *p, Sums *s)
{
    for (int64_t cell = 0; cell < 2 * p->bins; cell++) {
        const double count = (double)(s->tally[cell] & 0xFFFFFFFF), right = (double)(s->tally[cell] >> 32);
        s->count[cell / 2] += count, s->right[cell / 2] += right;
        s->totals[ROWS] += count, s->totals[WRONG] += count - right;
        s->tally[cell] = 0;
    }
}

/* One class's probability above the first edge; without a branch, since what comes next cannot be foreseen. */
INLINE void add_to_class(const double *edges, int64_t bins, Pair *cells, double value)
{
    const double near = value * (double)bins, last = (double)(bins - 1);
    int64_t b = (int64_t)(near > last ? last : near);
    b -= value <= edges[b];
    b += (value > edges[b + 1]) & (b < bins - 1);
    cells[b] += (Pair){1, value};
}

#include "gather.h"
#define KERNEL "score_pass.h"
#include "each_instruction_set.h"

typedef void (*Scan)(const Pass *, int64_t, int64_t, Sums *, double *);

/* Memory for one thread's sums, all zero, or -1. */
static int allocate(const Pass *p, Sums *s)
{
    const int64_t classes = p->want & WANT_CLASSES ? p->classes : 0;
    const size_t bins = (size_t)p->bins * 8, cells = (size_t)(classes * p->bins), first = (size_t)(classes + 7) / 8 * 8;
    memset(s, 0, sizeof *s);
    s->bad = -1;
    s->memory = calloc(bins + first + cells * 3 + 8, sizeof(double));
    if (!s->memory)
        return -1;
    double *at = (double *)(((uintptr_t)s->memory + 63) / 64 * 64);
    s->first = at, at += first;
    s->tally = (int64_t *)at, s->confidence = at + 2 * p->bins, s->count = at + 4 * p->bins;
    s->right = at + 5 * p->bins, at += bins;
    s->classes = (Pair *)at, at += 2 * cells;
    s->class_correct = at;
    return 0;
}

/* One thread's rows. */
static int scan_part(const Pass *p, Scan scan, int64_t begin, int64_t end, Sums *s)
{
    double small[2048] __attribute__((aligned(64)));
    const size_t lanes = scratch_doubles(p);
    double *scratch = lanes <= 2048 ? small : aligned_alloc(64, (lanes + 7) / 8 * 64);
    if (allocate(p, s) < 0 || !scratch) {
        if (scratch != small)
            free(scratch);
        return -1;
    }
    scan(p, begin, end, s, scratch);
    if (scratch != small)
        free(scratch);
    return 0;
}

/* Add a thread's sums to what the caller sees: bins (3, bins), classes (3, classes, bins). */
static void deliver(const Pass *p, const Sums *s, double *totals, double *bins, double *classes)
{
    const int64_t cells = p->classes * p->bins;
    for (int t = 0; t < SUMMED; t++)
        totals[t] += s->totals[t];
    totals[MISS] = fmax(totals[MISS], s->totals[MISS]);
    for (int64_t b = 0; b < p->bins; b++) {
        bins[b] += s->count[b];
        bins[p->bins + b] += s->confidence[2 * b] + s->confidence[2 * b + 1];
        bins[2 * p->bins + b] += s->right[b];
    }
    if (!(p->want & WANT_CLASSES))
        return;
    for (int64_t k = 0; k < p->classes; k++) {
        double in_first = s->totals[ROWS];
        for (int64_t b = 1; b < p->bins; b++)
            in_first -= s->classes[k * p->bins + b][0];
        classes[k * p->bins] += in_first;
        classes[cells + k * p->bins] += s->first[k] + s->classes[k * p->bins][1];
        classes[2 * cells + k * p->bins] += s->class_correct[k * p->bins];
        for (int64_t b = 1; b < p->bins; b++) {
            classes[k * p->bins + b] += s->classes[k * p->bins + b][0];
            classes[cells + k * p->bins + b] += s->classes[k * p->bins + b][1];
            classes[2 * cells + k * p->bins + b] += s->class_correct[k * p->bins + b];
        }
    }
}

/* The first bad row, -1 if there is none, -2 without memory. */
static int64_t scan_all(const Pass *p, Scan scan, int threads, double *totals, double *bins, double *classes)
{
    const int64_t count = p->outer * p->inner;
    Sums *parts = calloc((size_t)threads, sizeof(Sums));
    int status = parts ? 0 : -1;
    if (parts && threads == 1) {
        status = scan_part(p, scan, 0, count, parts);
    } else if (parts) {
#ifdef _OPENMP
#pragma omp parallel num_threads(threads) reduction(min : status)
#endif
        {
#ifdef _OPENMP
            const int64_t team = omp_get_num_threads(), me = omp_get_thread_num();
#else
            const int64_t team = 1, me = 0;
#endif
            const int64_t share = ((count + team - 1) / team + BLOCK - 1) / BLOCK * BLOCK;
            const int64_t begin = me * share, end = begin + share < count ? begin + share : count;
            if (begin < end)
                status = scan_part(p, scan, begin, end, &parts[me]);
        }
    }
    int64_t bad = -1;
    for (int t = 0; parts && t < threads; t++) { /* in order: as many threads give the same bits */
        if (status == 0 && parts[t].memory) {
            if (parts[t].bad >= 0 && bad < 0)
                bad = parts[t].bad;
            deliver(p, &parts[t], totals, bins, classes);
        }
        free(parts[t].memory);
    }
    free(parts);
    return status < 0 ? -2 : bad;
}

enum { PASS_ARGUMENTS = 26, TOLERANCE_AT = 11, LEAST_AT = 12, PASS_WIDEST_FROM = 32768 };

PyObject *score_pass(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (count != PASS_ARGUMENTS)
        return PyErr_Format(PyExc_TypeError, "score_pass takes %d arguments, got %zd", PASS_ARGUMENTS, count);
    int64_t i[PASS_ARGUMENTS];
    for (int n = 0; n < PASS_ARGUMENTS; n++)
        i[n] = n == TOLERANCE_AT || n == LEAST_AT ? 0 : PyLong_AsLongLong(args[n]);
    Pass p = {
        .scores = (const void *)(intptr_t)i[0],
        .dtype = (int)i[1],
        .outer = i[2], .classes = i[3], .inner = i[4],
        .strides = {i[5], i[6], i[7]},
        .labels = (const int64_t *)(intptr_t)i[8],
        .ignores = i[9] != 0,
        .ignore_index = i[10],
        .tolerance = PyFloat_AsDouble(args[TOLERANCE_AT]),
        .least = PyFloat_AsDouble(args[LEAST_AT]),
        .want = (int)i[13],
        .bins = i[14],
        .edges = (const double *)(intptr_t)i[15],
        .confidence = (void *)(intptr_t)i[19],
        .correct = (uint8_t *)(intptr_t)i[20],
        .nll = (double *)(intptr_t)i[21],
        .brier = (double *)(intptr_t)i[22],
        .logits = i[25] != 0,
        .converts = i[25] != 0 || i[1] == FLOAT16,
    };
    if (PyErr_Occurred())
        return NULL;
    double *totals = (double *)(intptr_t)i[16], *bins = (double *)(intptr_t)i[17], *classes = (double *)(intptr_t)i[18];
    if ((p.dtype != FLOAT32 && p.dtype != FLOAT64 && p.dtype != FLOAT16) || p.outer < 1 || p.inner < 1 || p.classes < 1 || p.bins < 1 ||
        p.classes > INT32_MAX || p.bins > INT32_MAX / 2 ||
        ((p.want & WANT_CLASSES) && p.classes > INT32_MAX / p.bins) || !p.scores || !p.labels || !p.edges || !totals || !bins ||
        ((p.want & WANT_CLASSES) && !classes)) {
        PyErr_SetString(PyExc_ValueError, "score_pass: inconsistent description of the arrays");
        return NULL;
    }
    if (p.inner == 1) { /* (N, K) is (1, K, N) */
        p.inner = p.outer, p.outer = 1;
        p.strides[2] = p.strides[0];
    }
    const Scan scan[] = FUNCTIONS(scan);
    const int64_t elements = p.outer * p.inner * p.classes;
    int64_t bad;
    Py_BEGIN_ALLOW_THREADS
    bad = scan_all(&p, scan[chosen_set(i[24], elements, PASS_WIDEST_FROM)], threads_for(elements, i[23]), totals, bins, classes);
    Py_END_ALLOW_THREADS
    if (bad == -2)
        return PyErr_NoMemory();
    return PyLong_FromLongLong(bad);
}

enum { MOMENT_ARGUMENTS = 8 };

typedef int (*Moments)(const void *, int, const uint8_t *, int64_t, const double *, int64_t, int, double *);

PyObject *bin_moments(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (count != MOMENT_ARGUMENTS)
        return PyErr_Format(PyExc_TypeError, "bin_moments takes %d arguments, got %zd", MOMENT_ARGUMENTS, count);
    int64_t i[MOMENT_ARGUMENTS];
    for (int n = 0; n < MOMENT_ARGUMENTS; n++)
        i[n] = PyLong_AsLongLong(args[n]);
    if (PyErr_Occurred())
        return NULL;
    if ((i[1] != FLOAT32 && i[1] != FLOAT64) || i[3] < 0 || i[5] < 1 || !i[4] || !i[7] || (i[3] && (!i[0] || !i[2]))) {
        PyErr_SetString(PyExc_ValueError, "bin_moments: inconsistent description of the arrays");
        return NULL;
    }
    const Moments moments[] = FUNCTIONS(add_moments);
    int status;
    Py_BEGIN_ALLOW_THREADS
    status = moments[chosen_set(-1, i[3], PASS_WIDEST_FROM)]((const void *)(intptr_t)i[0], (int)i[1], (const uint8_t *)(intptr_t)i[2], i[3],
                         (const double *)(intptr_t)i[4], i[5], (int)i[6], (double *)(intptr_t)i[7]);
    Py_END_ALLOW_THREADS
    if (status < 0)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}
