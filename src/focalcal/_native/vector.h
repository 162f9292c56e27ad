/* The losses, compiled once for each instruction set by each_instruction_set.h. */
#include "vector_math.h"

/* From the sums of each example to its loss and the numbers that its gradient needs:
 *     dL/dz_j = e_j (linear + quadratic e_j) + constant (+ at_rival)  for j != y,     dL/dz_y = at_label.
 * With T = sum_k e_k, p = e / T, q = sum_{k != y} p_k and S = sum_{k != y} p_k^2:
 *     loss     = focal * -base^gamma log p_y + lam (q^2 + S)
 *     A        = base^gamma (gamma p_y ratio - 1)
 *     linear   = (-focal A - 2 lam (S - p_y q)) / T,   quadratic = 2 lam / T^2
 *     at_label = focal A q - 2 lam p_y (q^2 + S)
 * where base = q and ratio = log(p_y) / q, or, for AdaFocal's negative gammas, base = 1 + p_y with
 * |gamma| and ratio = -log(p_y) / (1 + p_y). docs/math/fused_gradient.md derives it. */
static void ISA(coefficients)(const Problem *p, Block *b, int64_t count)
{
    const vd zero = {0};
    for (int64_t i = 0; i < count; i += VECTOR_BYTES / 8) {
        vd others = *(vd *)(b->others + i), squares = *(vd *)(b->squares + i);
        vd own = *(vd *)(b->own + i), lag = *(vd *)(b->lag + i), scale = *(vd *)(b->scale + i);
        vd below_top = others, squares_below_top = squares;
        if (p->kind == BRIER) {
            others += *(vd *)(b->tops + i);
            squares += *(vd *)(b->tops + i);
        }
        vd total = others + own;
        vd inverse = 1.0 / total;
        vd q = others * inverse, own_p = own * inverse;
        vd S = squares * inverse * inverse;

        /* The largest e is 1. If it is the label's, total is 1 + others; if not, lag dominates. */
        vd over_one = ISA(select)(lag == 0.0, others, total - 1.0);
        vd log_total = ISA(log)(total, over_one);
        vd log_p = lag - log_total;

        vd gamma = zero + p->gamma;
        if (p->steps > 0) {
            gamma = zero + p->gammas[0];
            for (int64_t s = 1; s < p->steps; s++)
                gamma = ISA(select)(own_p >= p->edges[s], zero + p->gammas[s], gamma);
        }
        vl inverse_focal = gamma < 0.0;
        gamma = ISA(select)(inverse_focal, -gamma, gamma);

        /* q = 0 has the limits ratio = -1 and, for gamma > 0, power = 0. */
        vl saturated = q == 0.0;
        vd safe_q = ISA(select)(saturated, zero + 1.0, q);
        vd base = ISA(select)(inverse_focal, own_p + 1.0, safe_q);
        vd ratio = log_p / ISA(select)(inverse_focal, -base, base);
        ratio = ISA(select)(saturated & ~inverse_focal, zero - 1.0, ratio);
        vd power = ISA(exp_double)(gamma * ISA(log)(base, base - 1.0));
        power = ISA(select)(gamma == 0.0, zero + 1.0, power);
        power = ISA(select)(saturated & ~inverse_focal & (gamma > 0.0), zero, power);

        vd pull = ISA(select)(own_p == 0.0, zero, gamma * own_p * ratio); /* p log p -> 0 */
        vd A = p->focal * power * (pull - 1.0);
        vd anchor = q * q + S;
        vd loss = p->lam * anchor;
        if (p->focal != 0.0) /* 0 * inf would be NaN */
            loss += -p->focal * power * log_p;
        vd linear = -A - 2.0 * p->lam * (S - own_p * q);
        vd at_label = A * q - 2.0 * p->lam * own_p * anchor;
        vd constant = zero, at_rival = zero;
        if (p->kind == BRIER) { /* p_t - S + p_y q for the top class t, with p_t - p_t^2 = p_t (1 - p_t) summed */
            vd gap = inverse * (below_top * inverse + own_p) - squares_below_top * inverse * inverse + own_p * q;
            vl alone = *(vd *)(b->tops + i) == 1.0;
            at_rival = 2.0 * p->lam * inverse * gap;
            *(vd *)(b->rival + i) = ISA(select)(alone, zero + 1.0, zero);
        } else if (p->kind == SMOOTH) { /* + smoothing * sum over k != y of -log p_k */
            const double others_count = (double)(p->classes - 1);
            loss += p->smoothing * (others_count * log_total - *(vd *)(b->drop + i));
            linear += p->smoothing * others_count;
            at_label += p->smoothing * others_count * own_p;
            constant = zero - p->smoothing;
        } else if (p->kind == DUAL) { /* base = 1 - p_y + p_j instead */
            vd rival_p = *(vd *)(b->rival + i) * inverse;
            base = ISA(select)(saturated, zero + 1.0, q + rival_p);
            power = ISA(exp_double)(gamma * ISA(log)(base, base - 1.0));
            power = ISA(select)(saturated & (gamma > 0.0), zero, power);
            vd growth = gamma * power / base; /* d power / d base */
            vd own_pull = ISA(select)(own_p == 0.0, zero, -log_p * own_p);
            vd rival_pull = ISA(select)(rival_p == 0.0, zero, -log_p * rival_p);
            loss = -power * log_p;
            linear = power + growth * (own_pull - rival_pull);
            at_label = -power * q - growth * own_pull * (q + rival_p);
            at_rival = growth * rival_pull;
        }
        *(vd *)(b->loss + i) = scale * loss;
        scale *= p->gradient_scale;
        *(vd *)(b->linear + i) = scale * inverse * linear;
        *(vd *)(b->quadratic + i) = scale * inverse * inverse * (2.0 * p->lam);
        *(vd *)(b->at_label + i) = scale * at_label;
        *(vd *)(b->constant + i) = scale * constant;
        *(vd *)(b->at_rival + i) = scale * at_rival;
    }
}

#define REAL float
#define VEC vf
#define IVEC vi
#define INT int32_t
#define MAX MAX_PS
#define EXP ISA(exp_float)
#define TYPED(name) ISA(name##_float)
#include "layout.h"

#define REAL double
#define VEC vd
#define IVEC vl
#define INT int64_t
#define MAX MAX_PD
#define EXP ISA(exp_double)
#define TYPED(name) ISA(name##_double)
#include "layout.h"

/* Examples begin .. end of the problem; returns the sum of their losses. scratch holds
 * scratch_bytes(p) bytes. */
static double ISA(examples)(const Problem *p, int64_t begin, int64_t end, void *scratch)
{
    if (p->dtype == FLOAT64)
        return ISA(examples_double)(p, begin, end, scratch);
    return ISA(examples_float)(p, begin, end, scratch);
}
