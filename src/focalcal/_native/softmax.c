/* Sums over rows that are made of softmax(z): what the fits of temperatures and of affine maps ask for again and again.
 * A row is read from memory once; what is computed from it stays in the cache. */

#include "native.h"

enum { BLOCK = 64, SUMS = 5, FLUSH_EVERY = 1024, ROWS_FROM = 32 };
enum { LOG_PARTITION, MEAN, VARIANCE, THIRD, OWN };

/* Rows of contiguous classes, stride elements apart. */
typedef struct {
    const void *logits;
    const int64_t *labels; /* or NULL */
    const double *weights; /* or NULL for ones */
    int64_t rows, classes, stride;
    int dtype, exact;
    double b;
} Rows;

/* softmax(weight * x + bias) of contiguous rows: with no diagonal weight, scores are overwritten by the derivatives. */
typedef struct {
    double *scores;
    const double *weight; /* or NULL for ones */
    const double *bias, *row_weights;
    const int64_t *labels;
    int64_t rows, classes, stride;
} Affine;

/* Of up to BLOCK rows the sums over the classes of e, e s, e s^2 and e s^3, e = exp(b s), and the label's s. */
typedef struct {
    double total[BLOCK], first[BLOCK], second[BLOCK], third[BLOCK], own[BLOCK];
} __attribute__((aligned(64))) Block;

INLINE int64_t padded(int64_t classes)
{
    return (classes + 15) / 16 * 16;
}

/* A thread's working memory: three rows in double or, of few classes, a block twice and a row. */
INLINE size_t scratch_bytes(int64_t classes)
{
    return (size_t)(classes < ROWS_FROM ? (2 * BLOCK + 1) * ROWS_FROM : padded(classes) * 3) * sizeof(double);
}

/* Whether a row's label can be used; without labels every row's can. */
INLINE int wrong_label(const int64_t *labels, int64_t row, int64_t classes)
{
    return labels && (labels[row] < 0 || labels[row] >= classes);
}

#define KERNEL "softmax_pass.h"
#include "each_instruction_set.h"

typedef int64_t (*Part)(const void *, int64_t, int64_t, double *, void *);

/* A part of the rows for each thread: sums (count for each thread) are added to out in their order, so that as many
 * threads give the same bits. The first row with a wrong label, -1 if there is none, -2 without memory. */
static int64_t in_parts(Part part, const void *problem, int64_t rows, int64_t classes, int threads, int64_t count,
                        double *out)
{
    const int64_t each = (count + 7) / 8 * 8;
    double *sums = calloc((size_t)(threads * each), sizeof(double));
    int64_t bad = INT64_MAX;
    int failed = !sums;
#ifdef _OPENMP
#pragma omp parallel num_threads(threads) reduction(min : bad) reduction(+ : failed)
#endif
    {
#ifdef _OPENMP
        const int64_t team = omp_get_num_threads(), me = omp_get_thread_num();
#else
        const int64_t team = 1, me = 0;
#endif
        const int64_t share = ((rows + team - 1) / team + BLOCK - 1) / BLOCK * BLOCK;
        const int64_t begin = me * share, end = begin + share < rows ? begin + share : rows;
        if (sums && begin < end) {
            void *scratch = aligned_alloc(64, scratch_bytes(classes));
            if (!scratch) {
                failed = 1;
            } else {
                const int64_t wrong = part(problem, begin, end, sums + me * each, scratch);
                bad = wrong >= 0 ? wrong : bad;
            }
            free(scratch);
        }
    }
    for (int t = 0; !failed && t < threads; t++)
        for (int64_t i = 0; i < count; i++)
            out[i] += sums[t * each + i];
    free(sums);
    return failed ? -2 : bad == INT64_MAX ? -1 : bad;
}

static PyObject *first_wrong(int64_t bad)
{
    return bad == -2 ? PyErr_NoMemory() : PyLong_FromLongLong(bad);
}

/* The arguments as integers but for one that is a double; 0, with an error set, if they are not. */
static int read_arguments(const char *name, PyObject *const *args, Py_ssize_t given, int wanted, int real_at, int64_t *i,
                          double *real)
{
    if (given != wanted) {
        PyErr_Format(PyExc_TypeError, "%s takes %d arguments, got %zd", name, wanted, given);
        return 0;
    }
    for (int n = 0; n < wanted; n++) {
        if (n == real_at)
            *real = PyFloat_AsDouble(args[n]);
        else
            i[n] = PyLong_AsLongLong(args[n]);
    }
    return !PyErr_Occurred();
}

enum { MOMENT_ARGUMENTS = 12, B_AT = 7, WIDEST_FROM = 32768 };

PyObject *moment_sums(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    int64_t i[MOMENT_ARGUMENTS];
    double b = 0;
    if (!read_arguments("moment_sums", args, count, MOMENT_ARGUMENTS, B_AT, i, &b))
        return NULL;
    const Rows p = {
        .logits = (const void *)(intptr_t)i[0], .dtype = (int)i[1], .rows = i[2], .classes = i[3], .stride = i[4],
        .labels = (const int64_t *)(intptr_t)i[5], .weights = (const double *)(intptr_t)i[6], .b = b, .exact = i[8] != 0,
    };
    double *out = (double *)(intptr_t)i[9];
    if (!p.logits || i[1] < FLOAT32 || i[1] > FLOAT16 || p.rows < 1 || p.classes < 1 || p.classes > INT32_MAX || !(b > 0) ||
        !out) {
        PyErr_SetString(PyExc_ValueError, "moment_sums: inconsistent description of the arrays");
        return NULL;
    }
    const Part part[] = FUNCTIONS(moments);
    const int64_t elements = p.rows * p.classes;
    int64_t bad;
    Py_BEGIN_ALLOW_THREADS
    bad = in_parts(part[chosen_set(i[11], elements, WIDEST_FROM)], &p, p.rows, p.classes, threads_for(elements, i[10]), SUMS,
                   out);
    Py_END_ALLOW_THREADS
    return first_wrong(bad);
}

enum { AFFINE_ARGUMENTS = 11 };

/* out: the loss, K derivatives in the bias and, with a diagonal weight, K in it. */
PyObject *affine_rows(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    int64_t i[AFFINE_ARGUMENTS];
    if (!read_arguments("affine_rows", args, count, AFFINE_ARGUMENTS, -1, i, NULL))
        return NULL;
    const Affine p = {
        .scores = (double *)(intptr_t)i[0], .rows = i[1], .classes = i[2], .stride = i[3],
        .weight = (const double *)(intptr_t)i[4], .bias = (const double *)(intptr_t)i[5],
        .labels = (const int64_t *)(intptr_t)i[6], .row_weights = (const double *)(intptr_t)i[7],
    };
    double *out = (double *)(intptr_t)i[8];
    if (!p.scores || p.rows < 1 || p.classes < 1 || p.classes > INT32_MAX || !p.bias || !p.labels || !p.row_weights || !out) {
        PyErr_SetString(PyExc_ValueError, "affine_rows: inconsistent description of the arrays");
        return NULL;
    }
    const Part part[] = FUNCTIONS(affine);
    const int64_t elements = p.rows * p.classes, sums = 1 + p.classes * (p.weight ? 2 : 1);
    int64_t bad;
    Py_BEGIN_ALLOW_THREADS
    bad = in_parts(part[chosen_set(i[10], elements, WIDEST_FROM)], &p, p.rows, p.classes, threads_for(elements, i[9]), sums,
                   out);
    Py_END_ALLOW_THREADS
    return first_wrong(bad);
}
