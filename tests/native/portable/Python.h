/* Just enough of Python to compile the kernel for a machine that has none. */
#include <stddef.h>

typedef struct PyObject PyObject;
typedef ptrdiff_t Py_ssize_t;
typedef PyObject *(*PyCFunction)(PyObject *, PyObject *);
typedef struct {
    const char *name;
    PyCFunction function;
    int flags;
    const char *doc;
} PyMethodDef;
struct PyModuleDef {
    int head;
    const char *name, *doc;
    int size;
    PyMethodDef *methods;
    void *slots, *traverse, *clear, *free;
};

#define PyModuleDef_HEAD_INIT 0
#define METH_FASTCALL 1
#define METH_NOARGS 2
#define PyMODINIT_FUNC PyObject *
#define Py_BEGIN_ALLOW_THREADS {
#define Py_END_ALLOW_THREADS }

#define Py_RETURN_NONE return NULL

static PyObject *PyExc_TypeError, *PyExc_ValueError;
static inline PyObject *PyErr_Format(PyObject *a, const char *b, ...) { return (void)a, (void)b, NULL; }
static inline PyObject *PyErr_NoMemory(void) { return NULL; }
static inline void PyErr_SetString(PyObject *a, const char *b) { (void)a, (void)b; }
static inline PyObject *PyErr_Occurred(void) { return NULL; }
static inline double PyFloat_AsDouble(PyObject *a) { return (void)a, 0; }
static inline long long PyLong_AsLongLong(PyObject *a) { return (void)a, 0; }
static inline PyObject *PyLong_FromLongLong(long long a) { return (void)a, NULL; }
static inline PyObject *PyLong_FromLong(long a) { return (void)a, NULL; }
static inline PyObject *PyTuple_New(Py_ssize_t a) { return (void)a, NULL; }
static inline int PyTuple_SetItem(PyObject *a, Py_ssize_t b, PyObject *c) { return (void)a, (void)b, (void)c, 0; }
static inline PyObject *PyUnicode_FromString(const char *a) { return (void)a, NULL; }
static inline PyObject *PyModule_Create(struct PyModuleDef *a) { return (void)a, NULL; }
