/* The minimiser against its own stationarity and a known answer, for processors the Python tests do not run on:
 * `make arm`. */
#include "minimiser.c"

#include <stdio.h>

int forked = 0, most_sets = 3;

enum { MOST_CLASSES = 30, EXAMPLES = 2000 };

int main(void)
{
    static double memory[12][MOST_CLASSES];
    const Scratch scratch = {memory[0], memory[1], memory[2], memory[3]};
    double worst = 0, top = 0;
    for (int n = 0; n < EXAMPLES; n++) {
        const int known = n == 0, support = known ? 3 : 2 + rand() % (MOST_CLASSES - 1);
        double total = 0, largest = 0, *eta = memory[10];
        for (int k = 0; k < support; k++) {
            eta[k] = known ? (k ? 0.3 - 0.1 * k : 0.7) : exp(-25.0 * rand() / RAND_MAX);
            if (eta[k] > eta[0])
                largest = eta[k], eta[k] = eta[0], eta[0] = largest;
        }
        for (int k = 0; k < support; k++)
            total += eta[k];
        for (int k = 0; k < support; k++)
            eta[k] /= total;
        const double lam = known ? 1 : exp(20.0 * rand() / RAND_MAX - 10);
        const Row r = {
            .eta = eta, .log_eta = memory[11], .gamma = known ? 2 : 5.0 * rand() / RAND_MAX, .two_lam = 2 * lam,
            .log_2lam = log(2 * lam), .support = support, .classes = support, .absolute = n % 2,
        };
        Point p = {.q = memory[4], .d = memory[5], .d_log_q = memory[6]};
        Point other = {.q = memory[7], .d = memory[8], .d_log_q = memory[9]};
        solve(&r, &p, &other, &scratch, 200);
        worst = max(worst, p.error < INFINITY ? p.error : 1);
        top = known ? p.q[0] : top;
    }
    const int fine = worst < 1e-12 && fabs(top - 0.5924) < 5e-5; /* the example of theory.minimise */
    printf("minimiser: largest residual %.1e, q_1 = %.4f: %s\n", worst, top, fine ? "fine" : "WRONG");
    return !fine;
}
