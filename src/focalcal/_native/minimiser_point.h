/* One point of the Newton method for the minimiser: balance, step and rounding, as in theory/newton_point.py, with the
 * names and formulas of docs/math/solver.md. The balance is computed from the terms themselves, one exp and one log a
 * class, unless one of them may leave the range of float64: then from their logarithms. */
#include "native.h"

#include <float.h>

#define TINY 5e-324 /* the spacing of subnormal numbers */

typedef struct { /* one row, over its support */
    const double *eta;
    double *log_eta;
    double gamma, two_lam, log_2lam;
    int64_t support, classes;
    int absolute;
} Row;

typedef struct { /* newton_point.Point */
    double *q, *d, *d_log_q;
    double sigma, d_sigma, error, floor, excess, reach;
} Point;

typedef struct { /* of the point that is being evaluated */
    double *rho, *slope, *s_share, *log_q;
} Scratch;

typedef struct { /* newton_point._Focal, for one class */
    double own, log_own, log_q, log_power, slope, elasticity, rounding;
} Focal;

typedef struct {
    double rho, bend, pull, s_share;
} Balance;

INLINE double max(double a, double b) { return a > b ? a : b; }
INLINE double min(double a, double b) { return a < b ? a : b; }

/* log1p(-q) for 0 <= q < 1, given 1 - q as rounded and one over it: what was lost in rounding is known exactly. */
INLINE double log_of_rest(double q, double not_q, double inverse)
{
    return log(not_q) + ((1 - not_q) - q) * inverse;
}

/* expm1; the last steps are small, and the series is then cheaper. */
INLINE double grow(double x)
{
    if (fabs(x) > 1e-2)
        return expm1(x);
    return x + x * x * (0.5 + x * (1. / 6 + x * (1. / 24 + x * (1. / 120 + x * (1. / 720 + x * (1. / 5040))))));
}

/* A sum that is right to its last digit or two however long it is (Kahan). */
typedef struct {
    double sum, lost;
} Exact;

INLINE void add(Exact *to, double x)
{
    const double y = x - to->lost, sum = to->sum + y;
    to->lost = (sum - to->sum) - y;
    to->sum = sum;
}

INLINE Focal focal_term(const Row *r, int64_t k, double q, double rest)
{
    const double gamma = r->gamma, not_q = 1 - q, inverse = 1 / not_q;
    Focal f;
    double bent;
    if (k > 0) {
        f.own = q;
        f.log_own = f.log_q = log(q);
        f.log_power = gamma * log_of_rest(q, not_q, inverse);
        bent = -f.log_q * q * inverse;
    } else {
        f.own = rest;
        f.log_own = log(rest);
        f.log_q = rest < 0.5 ? log1p(-rest) : log(q);
        f.log_power = gamma * f.log_own;
        bent = -f.log_q * q / rest; /* in this order: q / rest may overflow */
    }
    const double bend = gamma * ((gamma - 1) * bent + 2);
    f.slope = gamma * bent + 1;
    f.elasticity = (k > 0 ? bend * (q * inverse) + 1 : bend + rest / q) / f.slope;
    f.rounding = DBL_EPSILON * (2 - r->log_eta[k] - f.log_power - f.log_q);
    return f;
}

INLINE double log_weight_of(const Row *r, int64_t k, const Focal *f)
{
    return r->log_eta[k] + f->log_power + log(f->slope) - f->log_q;
}

/* Its quotients with another such number stay away from the ends of the range. */
INLINE int is_moderate(double x)
{
    return x > 1e-140 && x < 1e140;
}

static __attribute__((noinline)) Balance balance_of_logs(const Row *r, double log_weight, double log_own, double sigma,
                                                         double gap, int falls)
{
    const double log_anchor = r->log_2lam + log(gap), beside = falls ? log_weight : sigma;
    const int first = beside > log_anchor; /* not fmax, which would hide a NaN */
    const double larger = first ? beside : log_anchor, smaller = first ? log_anchor : beside;
    const double log_side = larger + log1p(exp(smaller - larger)), share = exp(beside - log_side);
    return (Balance){
        .rho = falls ? log_side - sigma : log_weight - log_side,
        .bend = falls ? share : 1,
        .pull = r->absolute ? 0 : exp(r->log_2lam + log_own - log_side),
        .s_share = falls ? 1 : share,
    };
}

/* `weight` is eta_k w(q_k), `s` is exp(sigma); the absolute anchor pulls by eta_m - eta_k, and never to the left. */
INLINE Balance balance_of(const Row *r, int64_t k, const Focal *f, double weight, double d, double s, double sigma)
{
    const int falls = !r->absolute && d < 0;
    const double gap = r->absolute ? r->eta[0] - r->eta[k] : fabs(d), anchor = r->two_lam * gap;
    if (!(is_moderate(weight) && is_moderate(s) && anchor < 1e140 && r->two_lam < 1e140))
        return balance_of_logs(r, log_weight_of(r, k, f), f->log_own, sigma, gap, falls);
    const double beside = falls ? weight : s, side = beside + anchor, inverse = 1 / side, share = beside * inverse;
    return (Balance){
        .rho = log(falls ? side / s : weight / side),
        .bend = falls ? share : 1,
        .pull = r->absolute ? 0 : r->two_lam * f->own * inverse,
        .s_share = falls ? 1 : share,
    };
}

/* What the rounding of the variables, and of d where it is subnormal, can do to rho: newton_point._shaken. */
INLINE double shaken(const Row *r, int64_t k, const Focal *f, const Balance *b, double q)
{
    /* Arithmetic with subnormal numbers is slow, and what it would give here is seldom of any size. */
    const double subnormal = f->own > 1e-290 && b->pull < 1e290 * f->own ? 0 : TINY / f->own;
    if (f->own < 1e-322 && (k == 0 ? b->rho > 0 : b->rho < 0))
        return INFINITY;
    if (k > 0)
        return b->bend * (2 * DBL_EPSILON + 2 * subnormal) + b->pull * subnormal;
    return b->bend * (2 * DBL_EPSILON * min(1, q / f->own) + (double)r->classes * subnormal) + b->pull * subnormal;
}

/* rho and the Newton step at (q, d, log s). Those of the class m follow from the others, whatever is given. A point
 * where q_m is not above `least` is not looked at: its excess is infinite. */
static void evaluate(const Row *r, Point *p, const Scratch *x, double least)
{
    Exact others = {0, 0}, moved = {0, 0};
    for (int64_t k = 1; k < r->support; k++)
        add(&others, p->q[k]), add(&moved, p->d[k]);
    const double rest = others.sum;
    p->d[0] = -moved.sum;
    p->q[0] = rest < 0.5 ? 1 - rest : r->eta[0] + p->d[0];
    p->error = p->floor = p->excess = INFINITY;
    if (!(p->q[0] > least))
        return;

    double error = 0, floor = 0, excess = 0, s = exp(p->sigma), pushed = 0, damped = 0;
    int wrong = 0;
    for (int64_t k = 0; k < r->support; k++) {
        const double q = p->q[k];
        const Focal f = focal_term(r, k, q, rest);
        const double weight = r->eta[k] / q * f.slope * exp(f.log_power); /* no product of subnormal numbers */
        if (k == 0 && r->absolute) { /* t = eta_m w(q_m): known once q is */
            p->sigma = is_moderate(weight) ? log(weight) : log_weight_of(r, 0, &f);
            s = weight;
        }
        Balance b = balance_of(r, k, &f, weight, p->d[k], s, p->sigma);
        b.bend *= f.elasticity;
        const double bound = f.rounding + shaken(r, k, &f, &b, q), size = fabs(b.rho);
        const double beyond = bound == INFINITY ? 0 : size - bound;
        wrong |= !(beyond < INFINITY); /* NaN, too */
        error = max(error, size), floor = max(floor, bound), excess = max(excess, beyond);
        const double slope = min(b.bend + b.pull, DBL_MAX);
        x->rho[k] = b.rho, x->slope[k] = slope, x->s_share[k] = b.s_share, x->log_q[k] = f.log_q;
        if (k > 0) {
            const double share = f.own / rest / slope;
            pushed += share * b.rho, damped += share * b.s_share;
        }
    }
    if (!wrong)
        p->error = error, p->floor = floor, p->excess = excess;

    p->d_sigma = (x->rho[0] + x->slope[0] * pushed) / (x->s_share[0] + x->slope[0] * damped);
    p->reach = 1; /* the largest share of the step, up to one, that keeps every q_k <= 1 */
    for (int64_t k = 1; k < r->support; k++) {
        const double step = p->q[k] > 0 ? (x->rho[k] - x->s_share[k] * p->d_sigma) / x->slope[k] : 0;
        p->d_log_q[k] = step;
        if (step > -x->log_q[k])
            p->reach = min(p->reach, -x->log_q[k] / step);
    }
}
