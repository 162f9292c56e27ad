/* The Newton method of theory/newton.py, row by row: the same unknowns, steps and stopping rules, and the same results
 * to a few units in the last place. What differs: a row's support is gathered first, with the class m in front.
 * Subnormal numbers are part of the contract, and never flushed. */
#include "minimiser_point.h"

/* That share of the step: of q and d the one with more correct digits gives the other. */
static void move(const Row *r, const Point *from, double share, Point *to)
{
    to->sigma = from->sigma + share * from->d_sigma;
    for (int64_t k = 1; k < r->support; k++) {
        const double eta = r->eta[k], step = from->q[k] * grow(share * from->d_log_q[k]);
        const double q = from->q[k] + step, d = from->d[k] + step, difference = q - eta;
        const int far = fabs(difference) > eta / 2;
        to->q[k] = far ? q : eta + d;
        to->d[k] = far ? difference : d;
    }
}

/* q = eta, and the s that is right for an infinitely strong anchor: the mean of -psi(eta_k) over the support. */
static void start(const Row *r, Point *p, double *log_minus_psi)
{
    Exact others = {0, 0};
    for (int64_t k = 1; k < r->support; k++)
        add(&others, r->eta[k]);
    double largest = -INFINITY, sum = 0;
    for (int64_t k = 0; k < r->support; k++) {
        p->q[k] = r->eta[k], p->d[k] = 0;
        r->log_eta[k] = log(r->eta[k]);
        const double rest = k ? 1 - r->eta[k] : others.sum, log_rest = k ? log1p(-r->eta[k]) : log(rest);
        const double log_q = k == 0 && rest < 0.5 ? log1p(-rest) : r->log_eta[k];
        log_minus_psi[k] = r->gamma * log_rest + log(1 - r->gamma * log_q * r->eta[k] / rest);
        largest = max(largest, log_minus_psi[k]);
    }
    for (int64_t k = 0; k < r->support; k++)
        sum += exp(log_minus_psi[k] - largest);
    p->sigma = largest + log(sum / (double)r->support);
}

/* The steps that were taken; *p is the last point, and *other is overwritten. */
static int64_t solve(const Row *r, Point *p, Point *other, const Scratch *x, int64_t max_steps)
{
    const double lowest = 0.5 / (double)r->support; /* at the solution q_m is the largest, hence at least 1 / |S| */
    start(r, p, x->rho);
    evaluate(r, p, x, 0);
    double share = p->reach;
    for (int64_t steps = 1; steps <= max_steps; steps++) {
        move(r, p, share, other);
        evaluate(r, other, x, max(0.1 * p->q[0], lowest));
        if (other->excess < p->excess * (1 - 1e-4 * share)) {
            const Point better = *other;
            *other = *p, *p = better;
            share = p->reach;
        } else {
            share /= 2;
        }
        /* At the floor, or so near to it that rounding decides which step looks better. */
        if (p->excess == 0 || (p->excess < 1e-12 && share < 0.1) || share < 1e-12)
            return steps;
    }
    return max_steps;
}

enum { MINIMISER_ARGUMENTS = 11, LANES = 12 };

PyObject *minimisers(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (count != MINIMISER_ARGUMENTS)
        return PyErr_Format(PyExc_TypeError, "minimisers takes %d arguments, got %zd", MINIMISER_ARGUMENTS, count);
    int64_t i[MINIMISER_ARGUMENTS];
    for (int n = 0; n < MINIMISER_ARGUMENTS; n++)
        i[n] = PyLong_AsLongLong(args[n]);
    if (PyErr_Occurred())
        return NULL;
    const double *eta = (const double *)(intptr_t)i[0], *gamma = (const double *)(intptr_t)i[1];
    const double *lam = (const double *)(intptr_t)i[2];
    const int64_t rows = i[3], classes = i[4], max_steps = i[5];
    double *q = (double *)(intptr_t)i[7], *d = (double *)(intptr_t)i[8], *figures = (double *)(intptr_t)i[9];
    int64_t *steps = (int64_t *)(intptr_t)i[10];
    if (rows < 0 || classes < 1 || classes > INT64_MAX / 16 / LANES || max_steps < 1 ||
        (rows && !(eta && gamma && lam && q && d && figures && steps))) {
        PyErr_SetString(PyExc_ValueError, "minimisers: inconsistent description of the arrays");
        return NULL;
    }
    double *memory = malloc((size_t)(classes * LANES) * sizeof(double));
    int64_t *at = malloc((size_t)classes * sizeof(int64_t));
    if (!memory || !at) {
        free(memory), free(at);
        return PyErr_NoMemory();
    }
    Py_BEGIN_ALLOW_THREADS
    double *lane[LANES];
    for (int n = 0; n < LANES; n++)
        lane[n] = memory + n * classes;
    const Scratch scratch = {lane[0], lane[1], lane[2], lane[3]};
    for (int64_t row = 0; row < rows; row++) {
        const double *given = eta + row * classes;
        int64_t support = 0, top = 0;
        for (int64_t k = 0; k < classes; k++) {
            q[row * classes + k] = given[k], d[row * classes + k] = 0;
            if (given[k] > 0) {
                top = support && given[k] > given[at[top]] ? support : top;
                at[support++] = k;
            }
        }
        Point p = {.q = lane[4], .d = lane[5], .d_log_q = lane[6], .sigma = gamma[row] == 0 ? 0 : -INFINITY};
        Point other = {.q = lane[7], .d = lane[8], .d_log_q = lane[9]};
        steps[row] = 0;
        if (support > 1) { /* else a vertex, where there is nothing to solve */
            const int64_t first = at[0];
            at[0] = at[top], at[top] = first;
            for (int64_t k = 0; k < support; k++)
                lane[10][k] = given[at[k]];
            const Row r = {
                .eta = lane[10], .log_eta = lane[11], .gamma = gamma[row], .two_lam = 2 * lam[row],
                .log_2lam = log(2) + log(lam[row]), .support = support, .classes = classes, .absolute = i[6] != 0,
            };
            steps[row] = solve(&r, &p, &other, &scratch, max_steps);
            for (int64_t k = 0; k < support; k++)
                q[row * classes + at[k]] = p.q[k], d[row * classes + at[k]] = p.d[k];
        }
        figures[row] = p.sigma;
        figures[rows + row] = tanh(p.error / 2), figures[2 * rows + row] = tanh(p.floor / 2);
        figures[3 * rows + row] = p.excess;
    }
    Py_END_ALLOW_THREADS
    free(memory), free(at);
    Py_RETURN_NONE;
}
