/* What is made of the text of every page, compiled: its SimHash in one pass over its words, which is
 * `simhash(shingles(text))`, and the text without some of its words, as `novelty` has it.
 *
 * The numbers of words come from `shingles.py`; those of plain words are remembered here in a table of fixed size, in
 * which a word that comes may drive out another, so that no text makes it grow or slow.
 */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

enum { LANES = 3, LONGEST = 23, SLOTS = 16384, MOST_ADDED = 255, BITS = 64 };

typedef struct { unsigned char size, run[LONGEST]; uint64_t lanes[LANES]; } Slot;

/* 1 MB, under the interpreter's lock; a size of 0 is an empty slot. */
static Slot remembered[SLOTS];
/* What a byte is in a word: lower case, 0 where it ends one. */
static unsigned char folded[256];

typedef struct {
    Py_ssize_t words, shingles;
    uint64_t before[LANES], last[LANES]; /* the two words before */
    uint64_t sums[8]; /* bit i of each byte of all shingles, a counter a byte */
    int added; /* since the sums were taken over */
    Py_ssize_t counts[BITS];
} Sketch;

static void take_over(Sketch *s)
{
    for (int bit = 0; bit < 8; bit++) {
        for (int byte = 0; byte < 8; byte++) s->counts[8 * byte + bit] += s->sums[bit] >> 8 * byte & 0xFF;
        s->sums[bit] = 0;
    }
    s->added = 0;
}

static void add(Sketch *s, uint64_t shingle)
{
    for (int bit = 0; bit < 8; bit++) s->sums[bit] += shingle >> bit & 0x0101010101010101;
    s->shingles++;
    if (++s->added == MOST_ADDED) take_over(s);
}

static void word(Sketch *s, const uint64_t *lanes)
{
    if (s->words++ > 1) add(s, s->before[0] ^ s->last[1] ^ lanes[2]);
    memcpy(s->before, s->last, sizeof s->last);
    memcpy(s->last, lanes, sizeof s->last);
}

/* The numbers of the words of a run, as `shingles.py` has them. */
static PyObject *asked(PyObject *numbers, const unsigned char *run, Py_ssize_t size)
{
    PyObject *key = PyBytes_FromStringAndSize((const char *)run, size);
    if (!key) return NULL;
    PyObject *found = PyObject_GetItem(numbers, key);
    Py_DECREF(key);
    if (found && !PyBytes_Check(found)) {
        Py_CLEAR(found);
        PyErr_SetString(PyExc_TypeError, "numbers of words are bytes");
    }
    return found;
}

static int long_run(Sketch *s, PyObject *numbers, const unsigned char *run, Py_ssize_t size)
{
    PyObject *found = asked(numbers, run, size);
    if (!found) return -1;
    const char *at = PyBytes_AsString(found), *end = at + PyBytes_Size(found);
    uint64_t lanes[LANES];
    for (; end - at >= (Py_ssize_t)sizeof lanes; at += sizeof lanes) {
        memcpy(lanes, at, sizeof lanes);
        word(s, lanes);
    }
    Py_DECREF(found);
    return 0;
}

/* A run that is one word of ASCII and fits into a slot. */
static int short_run(Sketch *s, PyObject *numbers, const unsigned char *run, Py_ssize_t size, uint64_t hash)
{
    Slot *slot = &remembered[hash >> 32 & (SLOTS - 1)];
    if (slot->size != size || memcmp(slot->run, run, size)) {
        PyObject *found = asked(numbers, run, size);
        if (!found) return -1;
        if (PyBytes_Size(found) != sizeof slot->lanes) {
            Py_DECREF(found);
            PyErr_SetString(PyExc_ValueError, "a plain word has the numbers of one");
            return -1;
        }
        memcpy(slot->lanes, PyBytes_AsString(found), sizeof slot->lanes);
        memcpy(slot->run, run, size);
        slot->size = size;
        Py_DECREF(found);
    }
    word(s, slot->lanes);
    return 0;
}

static int read_words(Sketch *s, PyObject *numbers, const unsigned char *text, Py_ssize_t size)
{
    unsigned char run[LONGEST], *whole = NULL;
    const unsigned char *at = text, *end = text + size;
    int status = 0;
    while (!status) {
        while (at < end && !folded[*at]) at++;
        if (at == end) break;
        const unsigned char *from = at;
        uint64_t hash = 0;
        unsigned char high = 0;
        for (; at < end && folded[*at]; at++) {
            unsigned char c = folded[*at];
            if (at - from < LONGEST) run[at - from] = c;
            hash = (hash ^ c) * 0x9E3779B97F4A7C15;
            high |= c;
        }
        Py_ssize_t length = at - from;
        if (length <= LONGEST && high < 0x80) { status = short_run(s, numbers, run, length, hash); continue; }
        whole = PyMem_Malloc(length);
        if (!whole) { PyErr_NoMemory(); return -1; }
        for (Py_ssize_t i = 0; i < length; i++) whole[i] = folded[from[i]];
        status = long_run(s, numbers, whole, length);
        PyMem_Free(whole);
    }
    return status;
}

static PyObject *simhash(PyObject *module, PyObject *args)
{
    const char *text;
    Py_ssize_t size;
    PyObject *numbers;
    if (!PyArg_ParseTuple(args, "y#O", &text, &size, &numbers)) return NULL;
    Sketch s = {0};
    if (read_words(&s, numbers, (const unsigned char *)text, size)) return NULL;
    if (s.words == 1) add(&s, s.last[0]);
    else if (s.words == 2) add(&s, s.before[0] ^ s.last[1]);
    take_over(&s);
    unsigned long long value = 0;
    for (int bit = 0; bit < BITS; bit++) value |= (unsigned long long)(2 * s.counts[bit] > s.shingles) << bit;
    return PyLong_FromUnsignedLongLong(value);
}

/* In lower case. Without a branch, so that the compiler takes many at once. */
static void fold(const unsigned char *restrict text, Py_ssize_t size, unsigned char *restrict out)
{
    for (Py_ssize_t i = 0; i < size; i++) {
        unsigned char c = text[i], capital = (unsigned char)(c - 'A') < 26;
        out[i] = c | (unsigned char)(capital << 5);
    }
}

/* Replace a piece by a NUL wherever it stands, in place; gives where the text ends then. */
static unsigned char *without_piece(unsigned char *text, unsigned char *end, const unsigned char *piece, Py_ssize_t size)
{
    unsigned char *from = text, *put = text, *at = text;
    while (end - at >= size && (at = memchr(at, *piece, end - at - size + 1))) {
        if (memcmp(at, piece, size)) { at++; continue; }
        memmove(put, from, at - from);
        put += at - from;
        *put++ = 0;
        from = at += size;
    }
    memmove(put, from, end - from);
    return put + (end - from);
}

static PyObject *without(PyObject *module, PyObject *args)
{
    const char *text;
    Py_ssize_t size;
    PyObject *pieces;
    if (!PyArg_ParseTuple(args, "y#O", &text, &size, &pieces)) return NULL;
    Py_ssize_t count = PyList_Size(pieces);
    unsigned char *copy = count < 0 ? NULL : PyMem_Malloc(size + 1);
    if (!copy) return count < 0 ? NULL : PyErr_NoMemory();
    fold((const unsigned char *)text, size, copy);
    unsigned char *end = copy + size;
    for (Py_ssize_t i = 0; i < count; i++) {
        char *piece;
        Py_ssize_t length;
        if (PyBytes_AsStringAndSize(PyList_GetItem(pieces, i), &piece, &length)) { PyMem_Free(copy); return NULL; }
        if (length) end = without_piece(copy, end, (const unsigned char *)piece, length);
    }
    PyObject *left = PyBytes_FromStringAndSize((const char *)copy, end - copy);
    PyMem_Free(copy);
    return left;
}

static PyMethodDef METHODS[] = {
    {"without", without, METH_VARARGS, "without(text, pieces, /): see crawlspace.content.novelty"},
    {"simhash", simhash, METH_VARARGS, "simhash(text, numbers, /): see crawlspace.content.simhash.text_simhash"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_words", NULL, -1, METHODS, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__words(void)
{
    for (int c = 0; c < 256; c++) {
        if (c >= 0x80 || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z')) folded[c] = c;
        else if (c >= 'A' && c <= 'Z') folded[c] = c | 0x20;
    }
    return PyModule_Create(&MODULE);
}
