/* Cross-entropy, focal, Brier and everything between, label smoothing and Dual Focal: loss and gradient in
 * one pass over the logits.
 *
 * No torch headers: the caller (focalcal/_native/__init__.py) hands over addresses and strides that it
 * has checked. The same source (vector.h, layout.h) is compiled for three instruction sets and the best
 * one the processor has is chosen at run time, so that one build serves every machine. */

#include "native.h"

enum { NONE, SUM, MEAN };
/* What is summed besides e: e^2; the same but for the top class, whose share of the Brier score alone cancels
 * (docs/math/fused_gradient.md); the logits; the best class below the label. */
enum { PLAIN, BRIER, SMOOTH, DUAL };
enum { BLOCK = 64, STACK_BYTES = 16384, ROW_BYTES = 16384, SPLIT_FROM = 256, WIDEST_FROM = 131072 };

/* Strides count elements and are ordered (outer, class, inner); example r is outer index r / inner and
 * inner index r % inner. */
typedef struct {
    const void *logits;
    void *gradient;         /* NULL: the loss alone */
    void *loss;             /* a real for each example (NONE), else one */
    const int64_t *labels;  /* outer * inner, contiguous */
    const void *weight;     /* classes reals, or NULL */
    const float *edges;     /* steps + 1 of them: gamma is a step function of p_y */
    const float *gammas;    /* steps of them; steps = 0: gamma alone */
    int64_t logit_strides[3], gradient_strides[3];
    int64_t outer, classes, inner, steps;
    int64_t ignore_index;
    int ignores; /* whether there is an ignore_index: every number may be one, or a wrong label */
    int dtype, reduction, kind;
    double focal, gamma, lam, smoothing, gradient_scale;
} Problem;

/* What is known of up to BLOCK examples: sums and a weight in, a loss and the gradient's coefficients out. */
typedef struct {
    double others[BLOCK];  /* sum of e_k over k != y; BRIER: without those that are 1, the largest */
    double squares[BLOCK]; /* sum of e_k^2, likewise */
    double tops[BLOCK];    /* BRIER: how many are 1 */
    double own[BLOCK];     /* e_y */
    double lag[BLOCK];     /* z_y - max z */
    double drop[BLOCK];    /* SMOOTH: sum of z_k - max z over k != y */
    double rival[BLOCK];   /* DUAL: the largest e_k with z_k < z_y, or 0; BRIER: 1 if at_rival is for e_k = 1 */
    double scale[BLOCK];   /* the label's weight */
    double loss[BLOCK], linear[BLOCK], quadratic[BLOCK], at_label[BLOCK];
    double constant[BLOCK]; /* SMOOTH: added to every entry but the label's */
    double at_rival[BLOCK]; /* DUAL: added to the rival's entry, shared if several are equal; BRIER: in its place */
} __attribute__((aligned(64))) Block;

/* Harmless entries, also for the lanes that pad the last vector. */
INLINE void clear(Block *b, int64_t count)
{
    for (int64_t i = 0; i < (count + 7) / 8 * 8; i++) {
        b->others[i] = b->own[i] = 1;
        b->squares[i] = b->lag[i] = b->scale[i] = b->drop[i] = b->rival[i] = b->tops[i] = 0;
    }
}

INLINE float bfloat16_to_float(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, 4);
    return value;
}

INLINE uint16_t float_to_bfloat16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
    return (uint16_t)(value != value ? 0x7FC0 : rounded);
}

INLINE int is_ignored(const Problem *p, int64_t y)
{
    return p->ignores && y == p->ignore_index;
}

/* The label of example r, or -1 if it is to be ignored. An invalid one was refused before; the second
 * look keeps memory safe if another thread writes to the labels meanwhile. */
INLINE int64_t label_of(const Problem *p, int64_t r)
{
    const int64_t y = p->labels[r];
    return is_ignored(p, y) || y < 0 || y >= p->classes ? -1 : y;
}

INLINE double weight_of(const Problem *p, int64_t y)
{
    if (!p->weight)
        return 1;
    return p->dtype == FLOAT64 ? ((const double *)p->weight)[y] : ((const float *)p->weight)[y];
}

INLINE int64_t offset_of(const Problem *p, const int64_t *strides, int64_t r)
{
    if (p->outer == 1)
        return r * strides[2];
    return r / p->inner * strides[0] + r % p->inner * strides[2];
}

INLINE int in_rows(const Problem *p)
{
    return p->logit_strides[1] == 1 && (!p->gradient || p->gradient_strides[1] == 1);
}

/* As many rows as stay in the first-level cache between the two passes. */
INLINE int64_t rows_at_once(const Problem *p)
{
    const int64_t rows = ROW_BYTES / (p->classes * (p->dtype == FLOAT64 ? 8 : 4));
    return rows < 1 ? 1 : rows > BLOCK ? BLOCK : rows;
}

INLINE size_t tile_bytes(const Problem *p)
{
    return (size_t)p->classes * BLOCK * (p->dtype == FLOAT64 ? 8 : 4);
}

/* Whether the classes of BLOCK examples stay in the first-level cache. */
INLINE int tile_fits(const Problem *p)
{
    return tile_bytes(p) <= ROW_BYTES;
}

/* Bytes of working memory for one thread: the classes of a block; or a vector (of at most 64 bytes) for each class, or
 * the rows of bfloat16 that are unpacked at once. */
static size_t scratch_bytes(const Problem *p)
{
    if (tile_fits(p))
        return tile_bytes(p);
    const size_t lanes = (size_t)p->classes * 64;
    const size_t rows = (size_t)p->classes * 4 * (size_t)rows_at_once(p);
    return p->dtype == BFLOAT16 && rows > lanes ? rows : lanes;
}

INLINE size_t element_bytes(const Problem *p)
{
    return p->dtype == FLOAT64 ? 8 : p->dtype == FLOAT32 ? 4 : 2;
}

/* The classes of count examples to (from) a scratch block with one row of lanes for each class; the lanes
 * left over repeat the first example. Compiled for the baseline alone: wider instruction sets tempt compilers
 * into scatter instructions, which are slower. */
#define GATHER(REAL, TYPE, CONVERT)                                                                      \
    for (int64_t l = 0; l < lanes; l++) {                                                                \
        const TYPE *x = (const TYPE *)p->logits + offset_of(p, p->logit_strides, first + (l < count ? l : 0)); \
        REAL *to = (REAL *)scratch + l;                                                                  \
        for (int64_t k = 0; k < p->classes; k++)                                                         \
            to[k * lanes] = CONVERT(x[k * stride]);                                                      \
    }
#define SCATTER(REAL, TYPE, CONVERT)                                                                     \
    for (int64_t l = 0; l < count; l++) {                                                                \
        TYPE *g = (TYPE *)p->gradient + offset_of(p, p->gradient_strides, first + l);                    \
        const REAL *from = (const REAL *)scratch + l;                                                    \
        for (int64_t k = 0; k < p->classes; k++)                                                         \
            g[k * stride] = CONVERT(from[k * lanes]);                                                    \
    }

static __attribute__((noinline)) void gather(const Problem *p, int64_t first, int64_t count, void *scratch,
                                             int64_t lanes)
{
    const int64_t stride = p->logit_strides[1];
    if (p->dtype == FLOAT64)
        GATHER(double, double, )
    else if (p->dtype == FLOAT32)
        GATHER(float, float, )
    else
        GATHER(float, uint16_t, bfloat16_to_float)
}

static __attribute__((noinline)) void scatter(const Problem *p, int64_t first, int64_t count, const void *scratch,
                                              int64_t lanes)
{
    const int64_t stride = p->gradient_strides[1];
    if (p->dtype == FLOAT64)
        SCATTER(double, double, )
    else if (p->dtype == FLOAT32)
        SCATTER(float, float, )
    else
        SCATTER(float, uint16_t, float_to_bfloat16)
}

/* Write the block's losses where each is wanted, and return the sum of those that are not ignored. */
INLINE double deliver(const Problem *p, const Block *b, int64_t first, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        const double loss = label_of(p, first + i) < 0 ? 0 : b->loss[i];
        sum += loss;
        if (p->reduction == NONE && p->dtype == FLOAT64)
            ((double *)p->loss)[first + i] = loss;
        else if (p->reduction == NONE)
            ((float *)p->loss)[first + i] = (float)loss;
    }
    return sum;
}

/* ---- one source, three instruction sets ---- */

typedef double (*Examples)(const Problem *, int64_t, int64_t, void *);

#define KERNEL "vector.h"
#include "each_instruction_set.h"

/* ---- running a problem ---- */

/* Part of the problem; 0, or -1 when there is no memory. */
static int run_part(const Problem *p, Examples run, int64_t begin, int64_t end, double *sum)
{
    char small[STACK_BYTES] __attribute__((aligned(64)));
    const size_t bytes = scratch_bytes(p);
    void *scratch = bytes <= sizeof small ? small : malloc(bytes);
    if (!scratch)
        return -1;
    const uint64_t saved = flush_denormals();
    *sum = run(p, begin, end, scratch);
    restore_denormals(saved);
    if (scratch != small)
        free(scratch);
    return 0;
}

static int run_all(const Problem *p, Examples run, int threads, double *sum)
{
    const int64_t count = p->outer * p->inner;
    *sum = 0;
    if (threads <= 1)
        return count ? run_part(p, run, 0, count, sum) : 0;
    int status = 0;
    double parts[MOST_THREADS] = {0};
#ifdef _OPENMP
#pragma omp parallel num_threads(threads) reduction(min : status)
#endif
    {
#ifdef _OPENMP
        const int64_t team = omp_get_num_threads(), me = omp_get_thread_num();
#else
        const int64_t team = 1, me = 0;
#endif
        /* Multiples of 64 examples: no two threads write to one cache line of a channel-first array. */
        const int64_t part = (count + team - 1) / team, share = in_rows(p) ? part : (part + 63) / 64 * 64;
        const int64_t begin = me * share, end = begin + share < count ? begin + share : count;
        if (begin < end)
            status = run_part(p, run, begin, end, &parts[me]);
    }
    for (int t = 0; t < threads; t++) /* in order: as many threads give the same bits */
        *sum += parts[t];
    return status;
}

/* The first label that is neither a class nor ignore_index, or -1; sums the weights of the others. */
static int64_t first_bad_label(const Problem *p, double *total_weight)
{
    const int64_t count = p->outer * p->inner;
    double total = 0;
    for (int64_t r = 0; r < count; r++) {
        const int64_t y = p->labels[r];
        if (is_ignored(p, y))
            continue;
        if (y < 0 || y >= p->classes)
            return r;
        total += weight_of(p, y);
    }
    *total_weight = total;
    return -1;
}

/* ---- the Python side ---- */

enum { LOSS_ARGUMENTS = 28, FIRST_REAL = 21, REALS = 4 };

PyObject *fused_loss(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (count != LOSS_ARGUMENTS)
        return PyErr_Format(PyExc_TypeError, "fused_loss takes %d arguments, got %zd", LOSS_ARGUMENTS, count);
    int64_t i[LOSS_ARGUMENTS];
    double f[REALS];
    for (int n = 0; n < LOSS_ARGUMENTS; n++) {
        if (n >= FIRST_REAL && n < FIRST_REAL + REALS)
            f[n - FIRST_REAL] = PyFloat_AsDouble(args[n]);
        else
            i[n] = PyLong_AsLongLong(args[n]);
    }
    if (PyErr_Occurred())
        return NULL;
    Problem p = {
        .logits = (const void *)(intptr_t)i[0],
        .dtype = (int)i[1],
        .outer = i[2], .classes = i[3], .inner = i[4],
        .logit_strides = {i[5], i[6], i[7]},
        .gradient = (void *)(intptr_t)i[8],
        .gradient_strides = {i[9], i[10], i[11]},
        .labels = (const int64_t *)(intptr_t)i[12],
        .weight = (const void *)(intptr_t)i[13],
        .ignores = i[14] != 0,
        .ignore_index = i[15],
        .loss = (void *)(intptr_t)i[16],
        .reduction = (int)i[17],
        .steps = i[18],
        .edges = (const float *)(intptr_t)i[19],
        .gammas = (const float *)(intptr_t)i[20],
        .focal = f[0], .gamma = f[1], .lam = f[2], .smoothing = f[3],
        .kind = i[25] ? DUAL : f[3] != 0 ? SMOOTH : f[0] == 0 ? BRIER : PLAIN,
        .gradient_scale = 1,
    };
    const int64_t threads = i[26], isa = i[27];
    if (p.dtype < FLOAT32 || p.dtype > BFLOAT16 || p.reduction < NONE || p.reduction > MEAN || p.outer < 0 ||
        p.inner < 0 || p.classes < 1 || p.classes > INT32_MAX || p.steps < 0 ||
        (p.outer > 0 && p.inner > 0 && (!p.logits || !p.labels || !p.loss)) || (p.steps && (!p.edges || !p.gammas)) ||
        (p.reduction != NONE && !p.loss) || (p.kind > BRIER && (p.lam != 0 || p.steps)) ||
        (p.kind == DUAL && (p.smoothing != 0 || p.focal != 1))) {
        PyErr_SetString(PyExc_ValueError, "fused_loss: inconsistent description of the arrays");
        return NULL;
    }
    if (p.inner == 1) { /* (N, K) is (1, K, N): then a transposed array is just a channel-first one */
        p.inner = p.outer, p.outer = 1;
        p.logit_strides[2] = p.logit_strides[0];
        p.gradient_strides[2] = p.gradient_strides[0];
    }
    const Examples run[] = FUNCTIONS(examples);
    const int set = chosen_set(isa, p.outer * p.inner * p.classes, WIDEST_FROM);

    double total_weight = 0, sum = 0;
    const int64_t bad = first_bad_label(&p, &total_weight);
    if (bad >= 0)
        return PyLong_FromLongLong(bad);
    if (p.reduction == MEAN)
        p.gradient_scale = 1 / total_weight;
    int status;
    Py_BEGIN_ALLOW_THREADS
    status = run_all(&p, run[set], threads_for(p.outer * p.inner * p.classes, threads), &sum);
    Py_END_ALLOW_THREADS
    if (status < 0)
        return PyErr_NoMemory();
    if (p.reduction == MEAN)
        sum /= total_weight;
    if (p.reduction != NONE && p.dtype == FLOAT64)
        *(double *)p.loss = sum;
    else if (p.reduction != NONE)
        *(float *)p.loss = (float)sum;
    return PyLong_FromLong(-1);
}
