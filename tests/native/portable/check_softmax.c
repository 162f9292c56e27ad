/* Sums over softmax against their definitions, for processors the Python tests do not run on: `make arm`. */
#include "softmax.c"

#include <stdio.h>

int forked = 0, most_sets = 3;

enum { ROW_COUNT = 70, MOST_CLASSES = 1100 };
static const int class_counts[] = {1, 2, 3, 7, 10, 31, 32, 33, 64, 65, 100, 1030};

/* The largest relative difference of the five sums, or -1 if a wrong label is not found. */
static double moments_error(Part part, int dtype, int exact, int K)
{
    static double memory[ROW_COUNT * MOST_CLASSES];
    double weights[ROW_COUNT], expected[SUMS] = {0}, found[SUMS] = {0}, worst = 0;
    const double b = 0.7;
    int64_t labels[ROW_COUNT];
    for (int i = 0; i < ROW_COUNT; i++) {
        double z[MOST_CLASSES], top = -INFINITY, total = 0, mean = 0, variance = 0, third = 0;
        weights[i] = 0.5 + (double)rand() / RAND_MAX, labels[i] = rand() % K;
        for (int k = 0; k < K; k++) {
            const double value = 9.0 * rand() / RAND_MAX;
            const uint16_t half = (uint16_t)((rand() % 2) << 15 | (rand() % 16) << 10 | rand() % 1024);
            if (dtype == FLOAT64)
                z[k] = ((double *)memory)[i * K + k] = value;
            else if (dtype == FLOAT32)
                z[k] = ((float *)memory)[i * K + k] = (float)value;
            else
                z[k] = half_to_float(((uint16_t *)memory)[i * K + k] = half);
            top = fmax(top, z[k]);
        }
        for (int k = 0; k < K; k++)
            total += exp(b * (z[k] - top));
        for (int k = 0; k < K; k++)
            mean += exp(b * (z[k] - top)) / total * (z[k] - top);
        for (int k = 0; k < K; k++) {
            const double p = exp(b * (z[k] - top)) / total, away = z[k] - top - mean;
            variance += p * away * away, third += p * away * away * away;
        }
        expected[LOG_PARTITION] += weights[i] * log(total), expected[MEAN] += weights[i] * mean;
        expected[VARIANCE] += weights[i] * variance, expected[THIRD] += weights[i] * third;
        expected[OWN] += weights[i] * (z[labels[i]] - top);
    }
    const Rows p = {.logits = memory, .labels = labels, .weights = weights, .rows = ROW_COUNT, .classes = K, .stride = K,
                    .dtype = dtype, .exact = exact, .b = b};
    if (in_parts(part, &p, p.rows, K, 1, SUMS, found) != -1)
        return -1;
    for (int m = 0; m < SUMS; m++)
        worst = fmax(worst, fabs(found[m] - expected[m]) / (1 + fabs(expected[m])));
    labels[66] = K;
    return in_parts(part, &p, p.rows, K, 1, SUMS, found) == 66 ? worst : -1;
}

/* The same of the affine map's loss and derivatives, in rows and with a diagonal weight. */
static double affine_error(Part part, int diagonal, int K)
{
    static double scores[ROW_COUNT * MOST_CLASSES], before[ROW_COUNT * MOST_CLASSES];
    static double weight[MOST_CLASSES], bias[MOST_CLASSES], found[1 + 2 * MOST_CLASSES], expected[1 + 2 * MOST_CLASSES];
    double row_weights[ROW_COUNT], worst = 0;
    int64_t labels[ROW_COUNT];
    memset(found, 0, sizeof found), memset(expected, 0, sizeof expected);
    for (int k = 0; k < K; k++)
        weight[k] = 1.0 + (double)rand() / RAND_MAX, bias[k] = (double)rand() / RAND_MAX;
    for (int i = 0; i < ROW_COUNT * K; i++)
        before[i] = scores[i] = 5.0 * rand() / RAND_MAX;
    for (int i = 0; i < ROW_COUNT; i++)
        row_weights[i] = 0.5 + (double)rand() / RAND_MAX, labels[i] = rand() % K;
    const Affine p = {.scores = scores, .weight = diagonal ? weight : NULL, .bias = bias, .row_weights = row_weights,
                      .labels = labels, .rows = ROW_COUNT, .classes = K, .stride = K};
    if (in_parts(part, &p, p.rows, K, 1, 1 + K * (1 + diagonal), found) != -1)
        return -1;
    for (int i = 0; i < ROW_COUNT; i++) {
        double z[MOST_CLASSES] = {0}, total = 0;
        for (int k = 0; k < K; k++)
            total += exp(z[k] = before[i * K + k] * (diagonal ? weight[k] : 1) + bias[k]);
        expected[0] += row_weights[i] * (log(total) - z[labels[i]]);
        for (int k = 0; k < K; k++) {
            const double error = row_weights[i] * (exp(z[k]) / total - (k == labels[i]));
            expected[1 + k] += error, expected[1 + K + k] += error * before[i * K + k];
            if (!diagonal)
                worst = fmax(worst, fabs(scores[i * K + k] - error));
        }
    }
    for (int m = 0; m < 1 + K * (1 + diagonal); m++)
        worst = fmax(worst, fabs(found[m] - expected[m]) / (1 + fabs(expected[m])));
    return worst;
}

int main(void)
{
    const Part moment_parts[] = FUNCTIONS(moments), affine_parts[] = FUNCTIONS(affine);
    const char *names[3];
    const int sets = instruction_sets(names);
    int passed = 0, failed = 0;
    for (int set = 0; set < sets; set++)
        for (size_t c = 0; c < sizeof class_counts / sizeof *class_counts; c++)
            for (int kind = 0; kind < 8; kind++) {
                static const int dtypes[] = {FLOAT32, FLOAT64, FLOAT16};
                const int exact = kind < 3;
                const double error = kind < 6 ? moments_error(moment_parts[set], dtypes[kind % 3], exact, class_counts[c])
                                              : affine_error(affine_parts[set], kind - 6, class_counts[c]);
                if (error >= 0 && error < (exact || kind >= 6 ? 1e-10 : 1e-4))
                    passed++;
                else
                    failed++, printf("%s kind %d K = %d: error %g\n", names[set], kind, class_counts[c], error);
            }
    printf("%d instruction sets, best %s: %d passed, %d failed\n", sets, names[sets - 1], passed, failed);
    return failed > 0;
}
