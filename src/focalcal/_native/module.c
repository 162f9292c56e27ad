/* The Python module: the functions of fused_loss.c, score_pass.c, minimiser.c and softmax.c, and the instruction sets. */
#include "native.h"
#ifndef _WIN32
#include <pthread.h>
#endif

int forked = 0, most_sets = 3;
#ifndef _WIN32
static void note_fork(void) { forked = 1; }
#endif

static PyObject *list_instruction_sets(PyObject *self, PyObject *ignored)
{
    (void)self, (void)ignored;
    const char *names[3];
    const int count = instruction_sets(names);
    PyObject *tuple = PyTuple_New(count);
    for (int n = 0; tuple && n < count; n++)
        PyTuple_SetItem(tuple, n, PyUnicode_FromString(names[n]));
    return tuple;
}

/* False, with an error set, if FOCALCAL_INSTRUCTION_SET names none. */
static int read_most_sets(void)
{
    static const char *const names[] = {"baseline", "avx2", "avx512"};
    const char *asked = getenv("FOCALCAL_INSTRUCTION_SET");
    if (!asked || !*asked)
        return 1;
    for (int n = 0; n < 3; n++)
        if (!strcmp(asked, names[n])) {
            most_sets = n + 1;
            return 1;
        }
    PyErr_Format(PyExc_ValueError, "FOCALCAL_INSTRUCTION_SET must be baseline, avx2 or avx512, got %s", asked);
    return 0;
}

static PyMethodDef methods[] = {
    {"fused_loss", (PyCFunction)(void (*)(void))fused_loss, METH_FASTCALL,
     "Loss and gradient from addresses; the index of the first bad label, or -1."},
    {"score_pass", (PyCFunction)(void (*)(void))score_pass, METH_FASTCALL,
     "What metrics are made of, from the address of an array of probabilities; the first bad row, or -1."},
    {"bin_moments", (PyCFunction)(void (*)(void))bin_moments, METH_FASTCALL,
     "Per bin: count, sums of confidence, correctness, confidence squared, confidence times correctness."},
    {"minimisers", (PyCFunction)(void (*)(void))minimisers, METH_FASTCALL,
     "The minimiser of the conditional risk for each row, from the addresses of posteriors, gammas and lams."},
    {"moment_sums", (PyCFunction)(void (*)(void))moment_sums, METH_FASTCALL,
     "Sums over rows of a softmax's log partition and moments, from addresses; the first wrong label, or -1."},
    {"affine_rows", (PyCFunction)(void (*)(void))affine_rows, METH_FASTCALL,
     "The loss of softmax(scores + bias) and its derivatives, from addresses; the first wrong label, or -1."},
    {"instruction_sets", list_instruction_sets, METH_NOARGS, "The usable instruction sets, best last."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "focalcal._native._kernel", NULL, -1, methods,
                                    NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernel(void)
{
#ifndef _WIN32
    pthread_atfork(NULL, NULL, note_fork);
#endif
    return read_most_sets() ? PyModule_Create(&module) : NULL;
}
