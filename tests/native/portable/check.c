/* The kernel against the formula written out, for processors the Python tests do not run on: `make arm`. */
#include "fused_loss.c"

#include <stdio.h>

int forked = 0, most_sets = 3;

enum { EXAMPLES = 37, MOST_CLASSES = 300 };
static const double gamma_ = 2.5, lam_ = 0.7;
static const int class_counts[] = {2, 3, 7, 10, 21, 31, 32, 33, 64, 100, 257};

/* FCL's loss of one example and its gradient, from docs/math/fused_gradient.md. */
static double expected(const double *z, int K, int y, double *gradient)
{
    double max = -INFINITY, total = 0, q = 0, S = 0;
    for (int k = 0; k < K; k++)
        max = z[k] > max ? z[k] : max;
    for (int k = 0; k < K; k++)
        total += exp(z[k] - max);
    for (int k = 0; k < K; k++) {
        const double p = exp(z[k] - max) / total;
        q += k == y ? 0 : p;
        S += k == y ? 0 : p * p;
    }
    const double p = exp(z[y] - max) / total, log_p = z[y] - max - log(total);
    const double A = pow(q, gamma_) * (gamma_ * p * log_p / q - 1);
    for (int k = 0; k < K; k++) {
        const double other = exp(z[k] - max) / total;
        gradient[k] = k == y ? A * q - 2 * lam_ * p * (q * q + S) : other * (-A + 2 * lam_ * (other - S + p * q));
    }
    return -pow(q, gamma_) * log_p + lam_ * (q * q + S);
}

static double read_as(int dtype, const void *array, int at)
{
    if (dtype == FLOAT64)
        return ((const double *)array)[at];
    return dtype == FLOAT32 ? ((const float *)array)[at] : bfloat16_to_float(((const uint16_t *)array)[at]);
}

static void write_as(int dtype, void *array, int at, double value)
{
    if (dtype == FLOAT64)
        ((double *)array)[at] = value;
    else if (dtype == FLOAT32)
        ((float *)array)[at] = (float)value;
    else
        ((uint16_t *)array)[at] = float_to_bfloat16((float)value);
}

/* The largest relative error of a gradient entry, or -1 if the loss is wrong. */
static double worst_error(Examples run, int dtype, int K, int channel_first)
{
    static double logits[EXAMPLES * MOST_CLASSES], gradient[EXAMPLES * MOST_CLASSES];
    int64_t labels[EXAMPLES];
    double loss, sum, wanted = 0, worst = 0, z[MOST_CLASSES], g[MOST_CLASSES];
    for (int i = 0; i < EXAMPLES * K; i++)
        write_as(dtype, logits, i, 6.0 * rand() / RAND_MAX - 3);
    for (int i = 0; i < EXAMPLES; i++)
        labels[i] = rand() % K;
    const int64_t rows[3] = {0, 1, K}, planes[3] = {0, EXAMPLES, 1};
    const int64_t *strides = channel_first ? planes : rows;
    Problem p = {.logits = logits, .gradient = gradient, .loss = &loss, .labels = labels, .outer = 1,
                 .inner = EXAMPLES, .classes = K, .ignores = 1, .ignore_index = -100, .dtype = dtype, .reduction = SUM,
                 .focal = 1, .gamma = gamma_, .lam = lam_, .gradient_scale = 1};
    memcpy(p.logit_strides, strides, sizeof rows);
    memcpy(p.gradient_strides, strides, sizeof rows);
    run_all(&p, run, 1, &sum);
    for (int i = 0; i < EXAMPLES; i++) {
        for (int k = 0; k < K; k++)
            z[k] = read_as(dtype, logits, (int)(i * strides[2] + k * strides[1]));
        wanted += expected(z, K, (int)labels[i], g);
        for (int k = 0; k < K; k++) {
            const double got = read_as(dtype, gradient, (int)(i * strides[2] + k * strides[1]));
            const double error = fabs(got - g[k]) / (fabs(g[k]) + 1e-3);
            worst = error > worst ? error : worst;
        }
    }
    return fabs(sum - wanted) > 1e-5 * wanted ? -1 : worst;
}

int main(void)
{
    static const double tolerance[] = {1e-5, 1e-12, 1e-2};
    static const char *types[] = {"float32", "float64", "bfloat16"};
    const Examples run[] = FUNCTIONS(examples);
    const char *names[3];
    const int sets = instruction_sets(names);
    int passed = 0, failed = 0;
    for (int set = 0; set < sets; set++)
        for (int dtype = 0; dtype < 3; dtype++)
            for (int layout = 0; layout < 2; layout++)
                for (size_t c = 0; c < sizeof class_counts / sizeof *class_counts; c++) {
                    const double error = worst_error(run[set], dtype, class_counts[c], layout);
                    const int fine = error >= 0 && error <= tolerance[dtype];
                    passed += fine, failed += !fine;
                    if (!fine)
                        printf("%s %s K = %d: error %g\n", names[set], types[dtype], class_counts[c], error);
                }
    printf("%d instruction sets, best %s: %d passed, %d failed\n", sets, names[sets - 1], passed, failed);
    return failed > 0;
}
