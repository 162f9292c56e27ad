/* The pass over scores against the sums written out, for processors the Python tests do not run on: `make arm`. */
#include "score_pass.c"

#include <stdio.h>

int forked = 0, most_sets = 3;

enum { EXAMPLES = 150, MOST_CLASSES = 300, BINS = 15 };
static const int class_counts[] = {2, 3, 7, 10, 21, 31, 32, 33, 64, 65, 100, 257};

enum { LOGITS = 1 << 4 }; /* joined to a dtype */

static double stored(void *memory, int dtype, int at, double value)
{
    if (dtype == FLOAT64)
        return ((double *)memory)[at] = value;
    if (dtype == FLOAT32)
        return ((float *)memory)[at] = (float)value;
    /* Of half precision numbers from 2^-14 to 2 every eighth is enough to choose from. */
    const int exponent = value < 0x1p-14 ? -14 : value >= 1 ? 0 : (int)floor(log2(value));
    const uint16_t bits = value < 0x1p-14 ? 0 : (uint16_t)((exponent + 15) << 10 | ((int)(ldexp(value, -exponent) * 128) & 127) << 3);
    ((uint16_t *)memory)[at] = bits;
    return half_to_float(bits);
}

/* The largest difference from sums computed one by one, or -1 if a count or a verdict is wrong. */
static double worst_error(Scan scan, int kind, int K, int channel_first)
{
    const int dtype = kind & ~LOGITS, logits = kind & LOGITS;
    static double memory[EXAMPLES * MOST_CLASSES];
    static double expected_classes[3 * MOST_CLASSES * BINS], classes[3 * MOST_CLASSES * BINS];
    double expected[3 * BINS] = {0}, bins[3 * BINS] = {0}, totals[TOTALS] = {0}, edges[BINS + 1], brier = 0, nll = 0;
    int64_t labels[EXAMPLES];
    memset(expected_classes, 0, sizeof expected_classes), memset(classes, 0, sizeof classes);
    for (int b = 0; b <= BINS; b++)
        edges[b] = b / (double)BINS;
    for (int i = 0; i < EXAMPLES; i++) {
        double p[MOST_CLASSES], total = 0, top = -1;
        int best = 0;
        for (int k = 0; k < K; k++)
            total += p[k] = exp(8.0 * rand() / RAND_MAX);
        if (logits) {
            total = 0;
            for (int k = 0; k < K; k++) {
                const int at = channel_first ? k * EXAMPLES + i : i * K + k;
                total += p[k] = exp(stored(memory, dtype, at, 1.5 * rand() / RAND_MAX));
            }
        }
        labels[i] = i % 11 == 5 ? -100 : rand() % K;
        for (int k = 0; k < K; k++) {
            const int at = channel_first ? k * EXAMPLES + i : i * K + k;
            p[k] = logits ? p[k] / total : stored(memory, dtype, at, p[k] / total);
            if (p[k] > top)
                top = p[k], best = k;
        }
        if (labels[i] < 0)
            continue;
        const int64_t b = bin_of(top, edges, BINS), y = labels[i];
        expected[b] += 1, expected[BINS + b] += top, expected[2 * BINS + b] += best == y;
        nll -= log(p[y]);
        for (int k = 0; k < K; k++) {
            const int64_t cell = k * BINS + bin_of(p[k], edges, BINS);
            brier += (p[k] - (k == y)) * (p[k] - (k == y));
            expected_classes[cell] += 1;
            expected_classes[K * BINS + cell] += p[k];
            expected_classes[2 * K * BINS + cell] += k == y;
        }
    }
    Pass p = {
        .scores = memory, .labels = labels, .edges = edges, .outer = 1, .classes = K, .inner = EXAMPLES, .bins = BINS,
        .strides = {0, channel_first ? EXAMPLES : 1, channel_first ? 1 : K}, .ignores = 1, .ignore_index = -100, .dtype = dtype,
        .want = WANT_BRIER | WANT_NLL | WANT_CLASSES, .tolerance = dtype == FLOAT16 ? 0.1 : 1e-5, .least = 0,
        .logits = logits != 0, .converts = logits || dtype == FLOAT16,
    };
    if (scan_all(&p, scan, 1, totals, bins, classes) != -1)
        return -1;
    double worst = fabs(totals[BRIER_SUM] - brier) + fabs(totals[NLL_SUM] - nll);
    for (int i = 0; i < 3 * BINS; i++)
        worst = fmax(worst, fabs(bins[i] - expected[i]));
    for (int i = 0; i < 3 * K * BINS; i++)
        worst = fmax(worst, fabs(classes[i] - expected_classes[i]));
    const int at = channel_first ? EXAMPLES * (K - 1) + 77 : 78 * K - 1;
    if (dtype == FLOAT64)
        ((double *)memory)[at] = NAN;
    else if (dtype == FLOAT32)
        ((float *)memory)[at] = NAN;
    else
        ((uint16_t *)memory)[at] = 0x7E00;
    return scan_all(&p, scan, 1, totals, bins, classes) == 77 ? worst : -1;
}

int main(void)
{
    const Scan scan[] = FUNCTIONS(scan);
    const char *names[3];
    const int sets = instruction_sets(names);
    static const int kinds[] = {FLOAT32, FLOAT64, FLOAT16, FLOAT32 | LOGITS, FLOAT64 | LOGITS, FLOAT16 | LOGITS};
    int passed = 0, failed = 0;
    for (int set = 0; set < sets; set++)
        for (int kind = 0; kind < 6; kind++)
            for (int layout = 0; layout < 2; layout++)
                for (size_t c = 0; c < sizeof class_counts / sizeof *class_counts; c++) {
                    const double error = worst_error(scan[set], kinds[kind], class_counts[c], layout);
                    if (error >= 0 && error < 1e-9)
                        passed++;
                    else
                        failed++, printf("%s kind %d K = %d: error %g\n", names[set], kind, class_counts[c], error);
                }
    printf("%d instruction sets, best %s: %d passed, %d failed\n", sets, names[sets - 1], passed, failed);
    return failed > 0;
}
