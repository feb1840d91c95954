/* Python's way in. Every array is checked here for its type, its size and the indices in it: what is behind
   (kernel.h) reads and writes without looking again. The interpreter is let go of while there is arithmetic to do. */
#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

#define INTERFACE 4 /* raised when a function takes or gives something else; see echoic.ranking.kernel */
#define MOST_ARRAYS 32

static const Instructions *chosen;

/* The arrays of one call, let go of together. */
typedef struct {
    Py_buffer views[MOST_ARRAYS];
    int count;
} Arrays;

static void let_go(Arrays *arrays)
{
    while (arrays->count)
        PyBuffer_Release(&arrays->views[--arrays->count]);
}

/* The numbers of `view`, of one of `formats` and so many (-1: any number, stored in `found`); NULL, and an error is
   set, where they are not. */
static void *checked(const Py_buffer *view, const char *formats, Py_ssize_t size, Py_ssize_t *found)
{
    const char *format = view->format ? view->format : "B";
    Py_ssize_t count = view->itemsize ? view->len / view->itemsize : 0;
    if (strlen(format) != 1 || !strchr(formats, format[0])) {
        PyErr_Format(PyExc_TypeError, "an array of format '%s' was given, where one of '%s' is taken", format, formats);
        return NULL;
    }
    if (size >= 0 && count != size) {
        PyErr_Format(PyExc_ValueError, "an array has %zd numbers, not %zd", count, size);
        return NULL;
    }
    if (found)
        *found = count;
    /* an empty array may have no address */
    static double nothing;
    return view->buf ? view->buf : &nothing;
}

/* The numbers of `object`, which must be contiguous; see `checked`. */
static void *numbers(Arrays *arrays, PyObject *object, const char *formats, Py_ssize_t size, Py_ssize_t *found, int written)
{
    if (arrays->count == MOST_ARRAYS) {
        PyErr_SetString(PyExc_SystemError, "too many arrays");
        return NULL;
    }
    Py_buffer *view = &arrays->views[arrays->count];
    if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (written ? PyBUF_WRITABLE : 0)) < 0)
        return NULL;
    arrays->count++;
    return checked(view, formats, size, found);
}

#define FLOATS "f"
#define HALVES "e"
#define COUNTS "B"
#define MASK "?"
#define INT32 (sizeof(int) == 4 ? "il" : "l")
#define UINT32 "IL"
#define INT64 (sizeof(long) == 8 ? "lq" : "q")

static int given(Py_ssize_t count, Py_ssize_t wanted)
{
    if (count == wanted)
        return 1;
    PyErr_Format(PyExc_TypeError, "%zd arguments were given, not %zd", count, wanted);
    return 0;
}

/* Whether every index lies from `least` up to, and not including, `end`. */
#define INSIDE(name, type)                                                                                            \
    static int name(const type *index, Py_ssize_t count, int64_t least, int64_t end)                                 \
    {                                                                                                                 \
        int wrong = 0;                                                                                                \
        for (Py_ssize_t i = 0; i < count; i++)                                                                        \
            wrong |= index[i] < least || index[i] >= end;                                                             \
        if (wrong)                                                                                                    \
            PyErr_SetString(PyExc_IndexError, "an index lies outside its array");                                     \
        return !wrong;                                                                                                \
    }
INSIDE(inside64, int64_t)
INSIDE(inside32, int32_t)

static int number(PyObject *object, double *into)
{
    *into = PyFloat_AsDouble(object);
    return !(*into == -1.0 && PyErr_Occurred());
}

static int whole(PyObject *object, Py_ssize_t least, Py_ssize_t *into)
{
    *into = PyLong_AsSsize_t(object);
    if (*into == -1 && PyErr_Occurred())
        return 0;
    if (*into < least) {
        PyErr_SetString(PyExc_ValueError, "a number is too small");
        return 0;
    }
    return 1;
}

static int is_dict(PyObject *object)
{
    if (!PyDict_Check(object))
        PyErr_SetString(PyExc_TypeError, "tokens must be a dict");
    return PyDict_Check(object);
}

static int is_tuple(PyObject *object, Py_ssize_t size)
{
    int right = PyTuple_Check(object) && (size < 0 || PyTuple_Size(object) == size);
    if (!right)
        PyErr_SetString(PyExc_TypeError, "a tuple has another length, or is none");
    return right;
}

/* ---- arrays that are kept for many calls ----------------------------------------------------------------- */

#define HELD "echoic_kernel.held"

/* Some arrays and a number, whose types and sizes every call checks again: only the asking for them is saved. */
typedef struct {
    int64_t number;
    Py_ssize_t count;
    Py_buffer views[];
} Held;

static void drop(Held *held)
{
    while (held->count)
        PyBuffer_Release(&held->views[--held->count]);
    free(held);
}

static void drop_capsule(PyObject *capsule)
{
    drop(PyCapsule_GetPointer(capsule, HELD));
}

PyDoc_STRVAR(hold_doc, "hold(number, *arrays)\n--\n\nWhat other functions take in place of these arrays.");

static PyObject *hold(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    Py_ssize_t number;
    if (nargs < 1) {
        PyErr_SetString(PyExc_TypeError, "a number is missing");
        return NULL;
    }
    if (!whole(args[0], 0, &number))
        return NULL;
    Held *held = calloc(1, sizeof *held + (size_t)(nargs - 1) * sizeof *held->views);
    if (!held)
        return PyErr_NoMemory();
    held->number = number;
    for (; held->count < nargs - 1; held->count++)
        if (PyObject_GetBuffer(args[held->count + 1], &held->views[held->count], PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0) {
            drop(held);
            return NULL;
        }
    PyObject *capsule = PyCapsule_New(held, HELD, drop_capsule);
    if (!capsule)
        drop(held);
    return capsule;
}

/* The arrays of `capsule`, at least `count`; NULL, and an error is set, where it has others. */
static const Held *held_by(PyObject *capsule, Py_ssize_t count)
{
    const Held *held = PyCapsule_GetPointer(capsule, HELD);
    if (held && held->count < count) {
        PyErr_Format(PyExc_ValueError, "%zd arrays are held, not %zd", held->count, count);
        return NULL;
    }
    return held;
}

/* ---- late interaction ------------------------------------------------------------------------------------ */

/* The word pieces of the rows that are wanted, each row once. */
typedef struct {
    int64_t *row;
    PyObject **blob;
    const int8_t **pieces;
    size_t *count;
    size_t used;
    int32_t *table; /* of places + 1, by row */
    size_t mask;
} Said;

static size_t place_of(const Said *said, int64_t row)
{
    size_t at = ((uint64_t)row * 0x9E3779B97F4A7C15u >> 32) & said->mask;
    while (said->table[at] && said->row[said->table[at] - 1] != row)
        at = (at + 1) & said->mask;
    return at;
}

/* Notes the pieces of `row`; 0 and an error is set, where they cannot be read. */
static int want(Said *said, PyObject *tokens, int64_t row)
{
    size_t at = place_of(said, row);
    if (said->table[at])
        return 1;
    PyObject *key = PyLong_FromLongLong(row);
    PyObject *blob = key ? PyDict_GetItemWithError(tokens, key) : NULL;
    Py_XDECREF(key);
    char *bytes = NULL;
    Py_ssize_t size = 0;
    if (blob == NULL) {
        if (PyErr_Occurred())
            return 0;
    } else if (PyBytes_AsStringAndSize(blob, &bytes, &size) < 0) {
        return 0;
    }
    if (size % AXES) {
        PyErr_Format(PyExc_ValueError, "%zd bytes are no whole word pieces of %d axes each", size, AXES);
        return 0;
    }
    Py_XINCREF(blob);
    said->row[said->used] = row;
    said->blob[said->used] = blob;
    said->pieces[said->used] = (const int8_t *)bytes;
    said->count[said->used] = (size_t)size / AXES;
    said->table[at] = (int32_t)++said->used;
    return 1;
}

/* What is asked: its pieces, rounded and laid out for the processor. */
typedef struct {
    size_t pieces, blocks;
    int16_t *laid_out;
    float *steps; /* [pieces] */
    const float *share;
} Asked;

static void round_and_lay_out(Asked *asked, const float *axes, const Instructions *by)
{
    int16_t rounded[AXES];
    for (size_t p = 0; p < asked->pieces; p++) {
        asked->steps[p] = round_to_steps(axes + p * AXES, AXES, INT16_MAX, rounded) / 127;
        if (!isnan(asked->steps[p]))
            lay_out(by, rounded, p, asked->pieces, asked->laid_out);
    }
}

/* likeness[used][pieces] of every row that is wanted; a row that asks the very question is hushed. */
static void compare(const Said *said, const Asked *asked, const Instructions *by, const uint8_t *flags, uint8_t asking,
                    float same, float echo, int32_t *products, float *likeness)
{
    for (size_t i = 0; i < said->used; i++) {
        float *like = likeness + i * asked->pieces, alike = 0;
        if (!said->count[i]) {
            for (size_t p = 0; p < asked->pieces; p++)
                like[p] = NAN;
            continue;
        }
        by->best_products(said->pieces[i], said->count[i], asked->laid_out, asked->pieces, products);
        for (size_t p = 0; p < asked->pieces; p++) {
            like[p] = products[p] * asked->steps[p];
            alike += like[p] * asked->share[p];
        }
        if (flags[said->row[i]] & asking && alike >= same)
            for (size_t p = 0; p < asked->pieces; p++)
                like[p] *= echo;
    }
}

/* likeness[pieces]: the best of a row and its neighbours, what is alike in these discounted. */
static void look_around(const Said *said, const float *likeness, size_t pieces, const int32_t *row_at, const float *window,
                        int64_t width, float *into)
{
    for (int64_t w = 0; w < width; w++) {
        if (row_at[w] < 0)
            continue;
        size_t place = (size_t)said->table[place_of(said, row_at[w])] - 1;
        if (!said->count[place])
            continue;
        const float *like = likeness + place * pieces;
        for (size_t p = 0; p < pieces; p++) {
            float near = like[p] > 0 ? like[p] * window[w] : like[p];
            into[p] = isnan(into[p]) || near > into[p] ? near : into[p];
        }
    }
}

/* The sum of likeness by shares to five decimals, so that equal texts have equal scores. */
static float rounded_sum(const float *like, const float *share, size_t pieces)
{
    double sum = 0;
    for (size_t p = 0; p < pieces; p++)
        sum += (double)like[p] * share[p];
    return (float)(rint(sum * 1e5) / 1e5);
}

/* The texts of one partition, and a question to compare with them. */
typedef struct {
    PyObject *tokens;
    const int64_t *slot_of;
    const int32_t *row_at;
    const uint8_t *flags;
    Py_ssize_t size, slots, head;
} Texts;

typedef struct {
    const float *axes, *share, *window;
    Py_ssize_t pieces, width, asking;
    double same, echo;
} Question;

/* Writes own, around and scores of `rows` rows; see `likeness_doc`. How many have no score; -1 and an error where it cannot. */
static Py_ssize_t compare_all(const Texts *texts, const Question *question, const int64_t *row, Py_ssize_t rows, float *own,
                              float *around, float *scores)
{
    Said said = {0};
    Asked asked = {.pieces = (size_t)question->pieces, .share = question->share};
    int32_t *products = NULL;
    float *like = NULL;
    const Instructions *by = chosen; /* another thread may choose anew meanwhile */
    Py_ssize_t missing = -1, width = question->width, none = 0;
    int64_t reach = width / 2, head = texts->head;

    if (!inside64(row, rows, 0, texts->size))
        return -1;
    for (Py_ssize_t k = 0; k < rows; k++) {
        int64_t slot = texts->slot_of[row[k]];
        int wrong = slot < 0 || slot >= texts->slots || (slot < head && (slot < reach || slot - reach + width > texts->slots));
        for (int64_t w = 0; !wrong && slot < head && w < width; w++)
            wrong = texts->row_at[slot - reach + w] < -1 || texts->row_at[slot - reach + w] >= texts->size;
        if (wrong) {
            PyErr_SetString(PyExc_IndexError, "a slot lies outside its array");
            return -1;
        }
    }

    size_t most = (size_t)rows * (size_t)(width + 1);
    said.mask = 16;
    while (said.mask < 2 * most)
        said.mask *= 2;
    said.table = calloc(said.mask--, sizeof *said.table);
    said.row = calloc(most + 1, sizeof *said.row);
    said.blob = calloc(most + 1, sizeof *said.blob);
    said.pieces = calloc(most + 1, sizeof *said.pieces);
    said.count = calloc(most + 1, sizeof *said.count);
    asked.blocks = (asked.pieces + LANES - 1) / LANES;
    asked.laid_out = calloc(asked.blocks * AXES * LANES + 1, sizeof *asked.laid_out);
    asked.steps = calloc(asked.pieces + 1, sizeof *asked.steps);
    products = calloc(asked.blocks * LANES + 1, sizeof *products);
    if (!said.table || !said.row || !said.blob || !said.pieces || !said.count || !asked.laid_out || !asked.steps || !products) {
        PyErr_NoMemory();
        goto end;
    }
    for (Py_ssize_t k = 0; k < rows; k++) {
        int64_t slot = texts->slot_of[row[k]];
        if (!want(&said, texts->tokens, row[k]))
            goto end;
        for (int64_t w = 0; slot < head && w < width; w++)
            if (texts->row_at[slot - reach + w] >= 0 && !want(&said, texts->tokens, texts->row_at[slot - reach + w]))
                goto end;
    }
    like = calloc(said.used * asked.pieces + 1, sizeof *like);
    if (!like) {
        PyErr_NoMemory();
        goto end;
    }

    Py_BEGIN_ALLOW_THREADS
    round_and_lay_out(&asked, question->axes, by);
    compare(&said, &asked, by, texts->flags, (uint8_t)question->asking, (float)question->same, (float)question->echo, products, like);
    for (Py_ssize_t k = 0; k < rows; k++) {
        int64_t slot = texts->slot_of[row[k]];
        size_t place = (size_t)said.table[place_of(&said, row[k])] - 1;
        float *mine = own + k * question->pieces, *best = around + k * question->pieces;
        memcpy(mine, like + place * asked.pieces, asked.pieces * sizeof *mine);
        memcpy(best, mine, asked.pieces * sizeof *mine);
        if (slot < head && said.count[place])
            look_around(&said, like, asked.pieces, texts->row_at + slot - reach, question->window, width, best);
        scores[k] = rounded_sum(best, asked.share, asked.pieces);
        none += isnan(scores[k]) != 0;
    }
    Py_END_ALLOW_THREADS
    missing = none;

end:
    for (size_t i = 0; i < said.used; i++)
        Py_XDECREF(said.blob[i]);
    free(said.table);
    free(said.row);
    free(said.blob);
    free((void *)said.pieces);
    free(said.count);
    free(asked.laid_out);
    free(asked.steps);
    free(products);
    free(like);
    return missing;
}

PyDoc_STRVAR(likeness_doc,
             "likeness(tokens, rows, slot_of, row_at, head, flags, asking, axes, share, window, same, echo, own, around, scores)"
             "\n--\n\n"
             "Write into own and around, [rows, pieces], how like each row, and each with its neighbours, is to a question,\n"
             "and into scores, [rows], the sum of around by the pieces' shares. Returns how many rows have no score.");

static PyObject *likeness(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    Arrays arrays = {.count = 0};
    PyObject *done = NULL;
    Py_ssize_t rows;
    const int64_t *row;
    float *own, *around, *scores;
    Texts texts;
    Question asked;

    if (!given(nargs, 15) || !is_dict(texts.tokens = args[0]))
        return NULL;
    if (!whole(args[4], 0, &texts.head) || !whole(args[6], 0, &asked.asking) || !number(args[10], &asked.same) ||
        !number(args[11], &asked.echo))
        return NULL;
    if ((row = numbers(&arrays, args[1], INT64, -1, &rows, 0)) &&
        (texts.slot_of = numbers(&arrays, args[2], INT64, -1, &texts.size, 0)) &&
        (texts.row_at = numbers(&arrays, args[3], INT32, -1, &texts.slots, 0)) &&
        (texts.flags = numbers(&arrays, args[5], COUNTS, texts.size, NULL, 0)) &&
        (asked.share = numbers(&arrays, args[8], FLOATS, -1, &asked.pieces, 0)) &&
        (asked.axes = numbers(&arrays, args[7], FLOATS, asked.pieces * AXES, NULL, 0)) &&
        (asked.window = numbers(&arrays, args[9], FLOATS, -1, &asked.width, 0)) &&
        (own = numbers(&arrays, args[12], FLOATS, rows * asked.pieces, NULL, 1)) &&
        (around = numbers(&arrays, args[13], FLOATS, rows * asked.pieces, NULL, 1)) &&
        (scores = numbers(&arrays, args[14], FLOATS, rows, NULL, 1))) {
        Py_ssize_t missing = compare_all(&texts, &asked, row, rows, own, around, scores);
        done = missing < 0 ? NULL : PyLong_FromSsize_t(missing);
    }
    let_go(&arrays);
    return done;
}

/* ---- vectors --------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(cosines_doc, "cosines(vectors, asked, out)\n--\n\nWrite the product of each row of 16-bit floats with what is asked.");

static PyObject *cosines(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    Arrays arrays = {.count = 0};
    PyObject *done = NULL;
    Py_ssize_t rows, width;
    const uint16_t *vectors;
    const float *asked;
    float *out;

    if (!given(nargs, 3))
        return NULL;
    if (!(asked = numbers(&arrays, args[1], FLOATS, -1, &width, 0)) || !(out = numbers(&arrays, args[2], FLOATS, -1, &rows, 1)) ||
        !(vectors = numbers(&arrays, args[0], HALVES, rows * width, NULL, 0)))
        goto end;
    Py_BEGIN_ALLOW_THREADS
    chosen->half_products(vectors, (size_t)rows, (size_t)width, asked, out);
    Py_END_ALLOW_THREADS
    done = Py_NewRef(Py_None);

end:
    let_go(&arrays);
    return done;
}

/* own[rows] with the cosine of each turn's and its neighbours' summed vector; 0 without memory for it. */
static int spread(const float *own, size_t rows, const int64_t *turn, const int64_t *slot, size_t count, size_t head,
                  const float *norms, const float *window, size_t width, float *out)
{
    size_t reach = width / 2;
    float *by_slot = calloc(head + 2 * reach + 1, sizeof *by_slot);
    if (!by_slot)
        return 0;
    memcpy(out, own, rows * sizeof *out);
    for (size_t i = 0; i < count; i++)
        by_slot[slot[i] + (int64_t)reach] = own[turn[i]];
    for (size_t i = 0; i < count; i++) {
        float sum = 0;
        for (size_t w = 0; w < width; w++)
            sum += by_slot[slot[i] + (int64_t)w] * window[w];
        out[turn[i]] = sum / norms[slot[i]];
    }
    free(by_slot);
    return 1;
}

PyDoc_STRVAR(channels_doc, "channels(layout, window, near, own, around, hidden, without_vector, floor, shape, text_window, "
                           "vector_own, vector_window, missed)\n--\n\n"
                           "Write the channels of one partition by its words' and its vectors' scores, and which rows none finds.");

static PyObject *channels(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    Arrays arrays = {.count = 0};
    PyObject *done = NULL;
    const Held *layout;
    Py_ssize_t rows, count, slots, hiding, blind, width;
    const float *window, *near = NULL, *own, *around, *norms, *shape;
    const int64_t *turn, *slot, *hidden, *without;
    float *text, *vector, *meaning;
    uint8_t *missed;
    double floor;

    if (!given(nargs, 13) || !number(args[7], &floor) || !(layout = held_by(args[0], 7)))
        return NULL;
    if (!(turn = checked(&layout->views[4], INT64, -1, &count)) || !(slot = checked(&layout->views[5], INT64, count, NULL)) ||
        !(norms = checked(&layout->views[6], FLOATS, -1, &slots)) || !(window = numbers(&arrays, args[1], FLOATS, -1, &rows, 0)) ||
        (args[2] != Py_None && !(near = numbers(&arrays, args[2], FLOATS, rows, NULL, 0))) ||
        !(own = numbers(&arrays, args[3], FLOATS, rows, NULL, 0)) || !(around = numbers(&arrays, args[4], FLOATS, rows, NULL, 0)) ||
        !(hidden = numbers(&arrays, args[5], INT64, -1, &hiding, 0)) ||
        !(without = numbers(&arrays, args[6], INT64, -1, &blind, 0)) || !(shape = numbers(&arrays, args[8], FLOATS, -1, &width, 0)) ||
        !(text = numbers(&arrays, args[9], FLOATS, rows, NULL, 1)) || !(vector = numbers(&arrays, args[10], FLOATS, rows, NULL, 1)) ||
        !(meaning = numbers(&arrays, args[11], FLOATS, rows, NULL, 1)) ||
        !(missed = numbers(&arrays, args[12], MASK, rows, NULL, 1)))
        goto end;
    if (layout->number > slots) {
        PyErr_SetString(PyExc_IndexError, "there are fewer slots than sessions take");
        goto end;
    }
    if (!inside64(turn, count, 0, rows) || !inside64(slot, count, 0, layout->number) || !inside64(hidden, hiding, 0, rows) ||
        !inside64(without, blind, 0, rows))
        goto end;
    if (!spread(around, (size_t)rows, turn, slot, (size_t)count, (size_t)layout->number, norms, shape, (size_t)width, meaning)) {
        PyErr_NoMemory();
        goto end;
    }
    for (Py_ssize_t i = 0; i < rows; i++) {
        text[i] = near ? window[i] + near[i] : window[i];
        vector[i] = own[i];
    }
    for (Py_ssize_t i = 0; i < hiding; i++)
        text[hidden[i]] = NAN;
    for (Py_ssize_t i = 0; i < blind; i++)
        vector[without[i]] = meaning[without[i]] = NAN;
    for (Py_ssize_t i = 0; i < rows; i++)
        missed[i] = !(vector[i] >= (float)floor || text[i] > 0);
    done = Py_NewRef(Py_None);

end:
    let_go(&arrays);
    return done;
}

PyDoc_STRVAR(answers_doc, "answers(scores, layout, start, out)\n--\n\n"
                          "Write into the partition's rows of out, from `start`, how well the turn before each matches, from 0 to 1.");

static PyObject *answers(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    Arrays arrays = {.count = 0};
    PyObject *done = NULL;
    const Held *layout;
    Py_ssize_t rows, start, size, count;
    const float *scores;
    const int64_t *asked;
    const int32_t *answered;
    float *out, high = -INFINITY;

    if (!given(nargs, 4) || !whole(args[2], 0, &start) || !(layout = held_by(args[1], 9)))
        return NULL;
    if (!checked(&layout->views[0], INT64, -1, &rows) || !(asked = checked(&layout->views[7], INT64, -1, &count)) ||
        !(answered = checked(&layout->views[8], INT32, count, NULL)) || !(scores = numbers(&arrays, args[0], FLOATS, -1, &size, 0)) ||
        !(out = numbers(&arrays, args[3], FLOATS, size, NULL, 1)))
        goto end;
    if (start > size || rows > size - start) {
        PyErr_SetString(PyExc_IndexError, "the partition has more rows than there are scores");
        goto end;
    }
    if (!inside64(asked, count, 0, rows) || !inside32(answered, count, 0, rows))
        goto end;
    for (Py_ssize_t i = 0; i < size; i++)
        high = scores[i] > high ? scores[i] : high;
    float by = (float)(1 / ((double)high + 1e-9));
    for (Py_ssize_t i = 0; i < rows; i++)
        out[start + i] = 0;
    for (Py_ssize_t i = 0; i < count; i++)
        out[start + answered[i]] = scores[start + asked[i]] * by;
    done = Py_NewRef(Py_None);

end:
    let_go(&arrays);
    return done;
}

/* ---- words ----------------------------------------------------------------------------------------------- */

/* Who says each of `terms`. Where `into` is NULL they are only counted. */
typedef struct {
    const int32_t *row, *fresh_row, *starts;
    const uint32_t *term, *fresh_term;
    const uint8_t *count, *fresh_count, *stale, *eligible;
    Py_ssize_t fresh, segment_rows;
    uint32_t mask;
} Buckets;

static int64_t look_up(const Buckets *from, uint32_t term, int32_t *row, uint8_t *count)
{
    int64_t found = 0;
    int32_t first = from->starts[term & from->mask], end = from->starts[(term & from->mask) + 1];
    for (int32_t p = first; p < end; p++) {
        if (from->term[p] != term || (from->stale && from->stale[from->row[p] / from->segment_rows]) ||
            (from->eligible && !from->eligible[from->row[p]]))
            continue;
        if (row) {
            row[found] = from->row[p];
            count[found] = from->count[p];
        }
        found++;
    }
    for (Py_ssize_t p = 0; p < from->fresh; p++) {
        if (from->fresh_term[p] != term || (from->eligible && !from->eligible[from->fresh_row[p]]))
            continue;
        if (row) {
            row[found] = from->fresh_row[p];
            count[found] = from->fresh_count[p];
        }
        found++;
    }
    return found;
}

PyDoc_STRVAR(find_doc,
             "find(terms, row, term, count, starts, segment_rows, stale, fresh_row, fresh_term, fresh_count, eligible, bounds)\n--\n\n"
             "Write where the postings of each term begin, and return their rows and counts as bytes.");

static PyObject *find(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    Arrays arrays = {.count = 0};
    Buckets from = {0};
    PyObject *done = NULL, *rows = NULL, *counts = NULL;
    Py_ssize_t terms, postings, starts, stale = PY_SSIZE_T_MAX, size;
    const uint32_t *term;
    int64_t *bounds;

    if (!given(nargs, 12) || !whole(args[5], 1, &from.segment_rows))
        return NULL;
    if (!(term = numbers(&arrays, args[0], UINT32, -1, &terms, 0)) || !(from.row = numbers(&arrays, args[1], INT32, -1, &postings, 0)) ||
        !(from.term = numbers(&arrays, args[2], UINT32, postings, NULL, 0)) ||
        !(from.count = numbers(&arrays, args[3], COUNTS, postings, NULL, 0)) ||
        !(from.starts = numbers(&arrays, args[4], INT32, -1, &starts, 0)) ||
        (args[6] != Py_None && !(from.stale = numbers(&arrays, args[6], MASK, -1, &stale, 0))) ||
        !(from.fresh_row = numbers(&arrays, args[7], INT32, -1, &from.fresh, 0)) ||
        !(from.fresh_term = numbers(&arrays, args[8], UINT32, from.fresh, NULL, 0)) ||
        !(from.fresh_count = numbers(&arrays, args[9], COUNTS, from.fresh, NULL, 0)) ||
        (args[10] != Py_None && !(from.eligible = numbers(&arrays, args[10], MASK, -1, &size, 0))) ||
        !(bounds = numbers(&arrays, args[11], INT64, terms + 1, NULL, 1)))
        goto end;
    from.mask = (uint32_t)(starts - 2);
    int wrong = starts < 2 || ((starts - 1) & (starts - 2)) != 0;
    for (Py_ssize_t i = 0; !wrong && i < terms; i++) { /* of the buckets, too, only those are read */
        int32_t first = from.starts[term[i] & from.mask], last = from.starts[(term[i] & from.mask) + 1];
        wrong = first < 0 || last < first || last > postings;
    }
    if (wrong) {
        PyErr_SetString(PyExc_ValueError, "buckets do not ascend from the first posting to the last");
        goto end;
    }
    /* of the rows only those are looked at that one of the terms may lead to */
    int64_t end = from.eligible ? size : INT64_MAX;
    end = from.stale && stale < end / from.segment_rows ? stale * from.segment_rows : end;
    if (!inside32(from.fresh_row, from.fresh, 0, from.eligible ? size : INT64_MAX))
        goto end;
    for (Py_ssize_t i = 0; i < terms; i++) {
        int32_t first = from.starts[term[i] & from.mask];
        if (!inside32(from.row + first, from.starts[(term[i] & from.mask) + 1] - first, 0, end))
            goto end;
    }
    bounds[0] = 0;
    for (Py_ssize_t i = 0; i < terms; i++)
        bounds[i + 1] = bounds[i] + look_up(&from, term[i], NULL, NULL);
    rows = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(bounds[terms] * (int64_t)sizeof(int32_t)));
    counts = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)bounds[terms]);
    if (!rows || !counts)
        goto end;
    int32_t *row = (int32_t *)(void *)PyBytes_AsString(rows);
    uint8_t *count = (uint8_t *)PyBytes_AsString(counts);
    for (Py_ssize_t i = 0; i < terms; i++)
        look_up(&from, term[i], row + bounds[i], count + bounds[i]);
    done = PyTuple_Pack(2, rows, counts);

end:
    Py_XDECREF(rows);
    Py_XDECREF(counts);
    let_go(&arrays);
    return done;
}

/* What is asked for: groups of terms, of which the best one counts. */
typedef struct {
    size_t groups, terms;
    int64_t *bounds; /* [groups + 1] */
    uint32_t *term;
    float *times, *closeness;
    int32_t *place;
    float *worth;
    int64_t *saying; /* how many rows say it */
} Wanted;

static int want_term(Wanted *wanted, PyObject *term, PyObject *value, int counted)
{
    unsigned long which = PyLong_AsUnsignedLong(term);
    double much;
    if (which == (unsigned long)-1 && PyErr_Occurred())
        return 0;
    if (which > UINT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "a term has 32 bits");
        return 0;
    }
    if (!number(value, &much))
        return 0;
    wanted->term[wanted->terms] = (uint32_t)which;
    wanted->times[wanted->terms] = counted ? (float)much : 1;
    wanted->closeness[wanted->terms] = counted ? 1 : (float)much;
    wanted->place[wanted->terms] = (int32_t)wanted->terms;
    wanted->terms++;
    return 1;
}

static void forget(Wanted *wanted)
{
    free(wanted->bounds);
    free(wanted->term);
    free(wanted->times);
    free(wanted->closeness);
    free(wanted->place);
    free(wanted->worth);
    free(wanted->saying);
}

/* Reads `asked`: terms with how often they are asked for, each a group; or a list of groups, terms with closeness. */
static int read_wanted(Wanted *wanted, PyObject *asked)
{
    int each = PyDict_Check(asked);
    PyObject *term, *value;
    if (!each && !PyList_Check(asked)) {
        PyErr_SetString(PyExc_TypeError, "terms must be a dict, or a list of them");
        return 0;
    }
    Py_ssize_t groups = each ? PyDict_Size(asked) : PyList_Size(asked), terms = each ? groups : 0;
    for (Py_ssize_t i = 0; !each && i < groups; i++) {
        if (!PyDict_Check(PyList_GetItem(asked, i))) {
            PyErr_SetString(PyExc_TypeError, "a group must be a dict");
            return 0;
        }
        terms += PyDict_Size(PyList_GetItem(asked, i));
    }
    size_t room = (size_t)terms + 1;
    wanted->bounds = calloc((size_t)groups + 1, sizeof *wanted->bounds);
    wanted->term = calloc(room, sizeof *wanted->term);
    wanted->times = calloc(room, sizeof *wanted->times);
    wanted->closeness = calloc(room, sizeof *wanted->closeness);
    wanted->place = calloc(room, sizeof *wanted->place);
    wanted->worth = calloc(room, sizeof *wanted->worth);
    wanted->saying = calloc(room, sizeof *wanted->saying);
    if (!wanted->bounds || !wanted->term || !wanted->times || !wanted->closeness || !wanted->place || !wanted->worth ||
        !wanted->saying) {
        PyErr_NoMemory();
        return 0;
    }
    for (Py_ssize_t i = 0; i < (each ? 1 : groups); i++) {
        PyObject *group = each ? asked : PyList_GetItem(asked, i);
        for (Py_ssize_t at = 0; PyDict_Next(group, &at, &term, &value);) {
            if (wanted->terms == (size_t)terms || !want_term(wanted, term, value, each)) {
                if (!PyErr_Occurred())
                    PyErr_SetString(PyExc_RuntimeError, "terms were added meanwhile");
                return 0;
            }
            if (each)
                wanted->bounds[++wanted->groups] = (int64_t)wanted->terms;
        }
        if (!each)
            wanted->bounds[++wanted->groups] = (int64_t)wanted->terms;
    }
    return 1;
}

/* What one partition says of what is asked for. */
typedef struct {
    Postings said;
    Py_ssize_t rows;
    int32_t *row;
    uint8_t *count;
    int64_t *bounds;
    const uint8_t *counted;
} Place;

/* Reads (postings, layout, eligible) and finds every posting of `wanted`; 0 and an error where it cannot. */
static int read_place(Place *place, PyObject *given, const Wanted *wanted)
{
    Buckets from = {0};
    Py_ssize_t postings, starts, stale, turns, counted;
    if (!PyTuple_Check(given) || PyTuple_Size(given) != 3) {
        PyErr_SetString(PyExc_TypeError, "a place must be a tuple of three");
        return 0;
    }
    const Held *words = held_by(PyTuple_GetItem(given, 0), 8), *layout = words ? held_by(PyTuple_GetItem(given, 1), 4) : NULL;
    const Held *eligible = layout ? held_by(PyTuple_GetItem(given, 2), 2) : NULL;
    Postings *said = &place->said;
    if (!eligible || !(from.row = checked(&words->views[0], INT32, -1, &postings)) ||
        !(from.term = checked(&words->views[1], UINT32, postings, NULL)) ||
        !(from.count = checked(&words->views[2], COUNTS, postings, NULL)) ||
        !(from.starts = checked(&words->views[3], INT32, -1, &starts)) ||
        !(from.stale = checked(&words->views[4], MASK, -1, &stale)) ||
        !(from.fresh_row = checked(&words->views[5], INT32, -1, &from.fresh)) ||
        !(from.fresh_term = checked(&words->views[6], UINT32, from.fresh, NULL)) ||
        !(from.fresh_count = checked(&words->views[7], COUNTS, from.fresh, NULL)) ||
        !(said->slot_of = checked(&layout->views[0], INT64, -1, &place->rows)) ||
        !(said->row_at = checked(&layout->views[1], INT32, -1, &turns)) ||
        !(said->lengths = checked(&layout->views[2], FLOATS, place->rows, NULL)) ||
        !(said->window_lengths = checked(&layout->views[3], FLOATS, turns, NULL)) ||
        !(from.eligible = checked(&eligible->views[0], MASK, place->rows, NULL)) ||
        !(place->counted = checked(&eligible->views[1], MASK, -1, &counted)))
        return 0;
    if (counted && counted != place->rows) {
        PyErr_SetString(PyExc_ValueError, "not every row is counted or not");
        return 0;
    }
    if (!counted)
        place->counted = NULL;
    if (eligible->number)
        from.eligible = NULL;
    said->head = layout->number;
    said->width = turns;
    from.segment_rows = (Py_ssize_t)words->number;
    from.mask = (uint32_t)(starts - 2);
    int wrong = starts < 2 || ((starts - 1) & (starts - 2)) != 0 || from.segment_rows < 1 || said->head > turns;
    int64_t end = place->rows, room = 1;
    if (!stale)
        from.stale = NULL;
    else if (!wrong && stale < end / from.segment_rows)
        end = stale * from.segment_rows;
    for (size_t i = 0; !wrong && i < wanted->terms; i++) {
        int32_t first = from.starts[wanted->term[i] & from.mask], last = from.starts[(wanted->term[i] & from.mask) + 1];
        wrong = first < 0 || last < first || last > postings;
        room += wrong ? 0 : last - first + from.fresh;
    }
    if (wrong) {
        PyErr_SetString(PyExc_ValueError, "buckets do not ascend from the first posting to the last");
        return 0;
    }
    place->row = malloc((size_t)room * sizeof *place->row);
    place->count = malloc((size_t)room * sizeof *place->count);
    place->bounds = calloc(wanted->terms + 1, sizeof *place->bounds);
    if (!place->row || !place->count || !place->bounds) {
        PyErr_NoMemory();
        return 0;
    }
    if (!inside64(said->slot_of, place->rows, 0, turns) || !inside32(said->row_at, turns, -1, place->rows) ||
        !inside32(from.fresh_row, from.fresh, 0, place->rows))
        return 0;
    for (size_t i = 0; i < wanted->terms; i++) {
        int32_t first = from.starts[wanted->term[i] & from.mask], last = from.starts[(wanted->term[i] & from.mask) + 1];
        if (!inside32(from.row + first, last - first, 0, end))
            return 0;
        int64_t at = place->bounds[i];
        place->bounds[i + 1] = at + look_up(&from, wanted->term[i], place->row + at, place->count + at);
    }
    said->row = place->row;
    said->count = place->count;
    said->bounds = place->bounds;
    return 1;
}

/* How many rows say each term: at least one if any row does. A row that another one represents is not counted. */
static void count_saying(const Place *places, Py_ssize_t count, Wanted *wanted)
{
    for (size_t i = 0; i < wanted->terms; i++) {
        int64_t total = 0;
        for (Py_ssize_t p = 0; p < count; p++)
            for (int64_t k = places[p].bounds[i]; k < places[p].bounds[i + 1]; k++)
                total += places[p].count[k] > 0;
        for (Py_ssize_t p = 0; p < count; p++) {
            int there = total > 0;
            for (int64_t k = places[p].bounds[i]; places[p].counted && k < places[p].bounds[i + 1]; k++)
                total -= places[p].count[k] > 0 && !places[p].counted[places[p].row[k]];
            total = there && total < 1 ? 1 : total;
        }
        wanted->saying[i] = total;
    }
}

/* Adds to `sums` the BM25 of every term that is not `left_out`, term by term. */
static void sum_own(const Postings *said, const Wanted *wanted, const uint8_t *left_out, double *sums)
{
    for (size_t i = 0; i < wanted->terms; i++)
        for (int64_t p = said->bounds[i]; !left_out[i] && p < said->bounds[i + 1]; p++) {
            float norm = said->norm + said->lengths[said->row[p]] * said->norm_by_length;
            sums[said->row[p]] += said->count[p] / (said->count[p] + norm) * wanted->worth[i];
        }
}

/* BM25 of one partition's rows into own, around and nameless, if it is not NULL; 0 without memory for it. */
static int score_place(const Place *place, const Wanted *wanted, const uint8_t *left_out, float *own, float *around,
                       float *nameless)
{
    Room room = {0};
    size_t rows = (size_t)place->rows, slots = (size_t)place->said.width, most = (rows > slots ? rows : slots) + 1;
    double *sums = calloc(3 * rows + 1, sizeof *sums);
    room.best = calloc(most, sizeof *room.best);
    room.marked = calloc(most, sizeof *room.marked);
    room.around = calloc(slots + 1, sizeof *room.around);
    room.touched = calloc(slots + 1, sizeof *room.touched);
    int there = sums && room.best && room.marked && room.around && room.touched;
    if (there) {
        score_words(&place->said, wanted->bounds, wanted->groups, wanted->place, wanted->closeness, &room, sums, sums + rows);
        if (nameless)
            sum_own(&place->said, wanted, left_out, sums + 2 * rows);
        for (size_t i = 0; i < rows; i++) {
            own[i] = (float)sums[i];
            around[i] = (float)sums[rows + i];
        }
        for (size_t i = 0; nameless && i < rows; i++)
            nameless[i] = (float)sums[2 * rows + i];
    }
    free(sums);
    free(room.best);
    free(room.marked);
    free(room.around);
    free(room.touched);
    return there;
}

/* The rarity of each term, None of those that nobody says. */
static PyObject *rarities(const Wanted *wanted, const float *rarity)
{
    PyObject *found = PyList_New((Py_ssize_t)wanted->terms);
    for (size_t i = 0; found && i < wanted->terms; i++) {
        PyObject *one = wanted->saying[i] > 0 ? PyFloat_FromDouble(rarity[wanted->saying[i]]) : Py_NewRef(Py_None);
        if (!one)
            Py_CLEAR(found);
        else
            PyList_SetItem(found, (Py_ssize_t)i, one);
    }
    return found;
}

PyDoc_STRVAR(words_doc,
             "words(places, asked, rarity, norms, window, names, own, around, nameless)\n--\n\n"
             "Write BM25 of each row, and of each with its neighbours; into nameless without the terms `names`, unless it is None.\n"
             "A place holds postings, layout, and the masks eligible and counted. The rarity of each term is\n"
             "that of how many rows say it; they are returned, None where nobody does.");

static PyObject *words(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    Arrays arrays = {.count = 0};
    Wanted wanted = {0};
    Place *places = NULL;
    uint8_t *left_out = NULL;
    PyObject *done = NULL;
    Py_ssize_t count, rarities_known, width, rows;
    const float *rarity, *norms, *window;
    float *own, *around, *nameless = NULL;
    int there = 1;

    if (!given(nargs, 9))
        return NULL;
    if (!PyTuple_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "places must be a tuple");
        return NULL;
    }
    count = PyTuple_Size(args[0]);
    places = calloc((size_t)count + 1, sizeof *places);
    if (!places)
        return PyErr_NoMemory();
    if (!read_wanted(&wanted, args[1]) || !(rarity = numbers(&arrays, args[2], FLOATS, -1, &rarities_known, 0)) ||
        !(norms = numbers(&arrays, args[3], FLOATS, 4, NULL, 0)) || !(window = numbers(&arrays, args[4], FLOATS, -1, &width, 0)) ||
        !(own = numbers(&arrays, args[6], FLOATS, -1, &rows, 1)) || !(around = numbers(&arrays, args[7], FLOATS, rows, NULL, 1)) ||
        (args[8] != Py_None && !(nameless = numbers(&arrays, args[8], FLOATS, rows, NULL, 1))))
        goto end;
    left_out = calloc(wanted.terms + 1, 1);
    if (!left_out) {
        PyErr_NoMemory();
        goto end;
    }
    for (size_t i = 0; nameless && i < wanted.terms; i++) {
        PyObject *term = PyLong_FromUnsignedLong(wanted.term[i]);
        int is_name = term ? PySequence_Contains(args[5], term) : -1;
        Py_XDECREF(term);
        if (is_name < 0)
            goto end;
        left_out[i] = (uint8_t)is_name;
    }
    Py_ssize_t total = 0;
    for (Py_ssize_t p = 0; p < count; p++) {
        if (!read_place(&places[p], PyTuple_GetItem(args[0], p), &wanted))
            goto end;
        places[p].said.worth = wanted.worth;
        places[p].said.window = window;
        places[p].said.reach = width / 2;
        places[p].said.norm = norms[0];
        places[p].said.norm_by_length = norms[1];
        places[p].said.window_norm_by_length = norms[2];
        total += places[p].rows;
    }
    if (total != rows || width % 2 == 0) {
        PyErr_SetString(PyExc_ValueError, "places, window and the room for scores do not fit together");
        goto end;
    }
    count_saying(places, count, &wanted);
    if (!inside64(wanted.saying, (Py_ssize_t)wanted.terms, 0, rarities_known))
        goto end;
    for (size_t i = 0; i < wanted.terms; i++)
        wanted.worth[i] = rarity[wanted.saying[i]] * wanted.times[i] * norms[3];
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t p = 0, at = 0; there && p < count; at += places[p++].rows)
        there = score_place(&places[p], &wanted, left_out, own + at, around + at, nameless ? nameless + at : NULL);
    Py_END_ALLOW_THREADS
    done = there ? rarities(&wanted, rarity) : PyErr_NoMemory();

end:
    for (Py_ssize_t p = 0; p < count; p++) {
        free(places[p].row);
        free(places[p].count);
        free(places[p].bounds);
    }
    free(places);
    free(left_out);
    forget(&wanted);
    let_go(&arrays);
    return done;
}

/* ---- fusion ---------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(scaled_doc, "scaled(scores, least, ranged, out)\n--\n\nWrite scores moved and stretched to lie from 0 to 1.");

static PyObject *scaled(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    Arrays arrays = {.count = 0};
    PyObject *done = NULL;
    Py_ssize_t size;
    double least;
    const float *scores;
    const uint8_t *ranged = NULL;
    float *out;

    if (!given(nargs, 4) || !number(args[1], &least))
        return NULL;
    if (!(scores = numbers(&arrays, args[0], FLOATS, -1, &size, 0)) ||
        (args[2] != Py_None && !(ranged = numbers(&arrays, args[2], MASK, size, NULL, 0))) ||
        !(out = numbers(&arrays, args[3], FLOATS, size, NULL, 1)))
        goto end;
    scale(scores, (size_t)size, (float)least, ranged, out);
    done = Py_NewRef(Py_None);

end:
    let_go(&arrays);
    return done;
}

/* out[i] = the sum of parts, each times its weight, at row[i] or, where row is NULL, at i; 0 and an error where it cannot. */
static int weigh(PyObject *parts, PyObject *weights, const int64_t *row, Py_ssize_t size, float *out)
{
    Py_ssize_t rows = size;
    if (!PyTuple_Check(parts) || !PyTuple_Check(weights) || PyTuple_Size(parts) != PyTuple_Size(weights)) {
        PyErr_SetString(PyExc_TypeError, "parts and weights must be tuples of the same length");
        return 0;
    }
    for (Py_ssize_t i = 0; i < size; i++)
        out[i] = 0;
    for (Py_ssize_t each = 0; each < PyTuple_Size(parts) && !PyErr_Occurred(); each++) {
        Arrays arrays = {.count = 0};
        double weight;
        const float *part = numbers(&arrays, PyTuple_GetItem(parts, each), FLOATS, row ? -1 : size, &rows, 0);
        if (part && number(PyTuple_GetItem(weights, each), &weight) && (!row || inside64(row, size, 0, rows)))
            for (Py_ssize_t i = 0; i < size; i++)
                out[i] += (float)weight * part[row ? row[i] : i];
        let_go(&arrays);
    }
    return !PyErr_Occurred();
}

PyDoc_STRVAR(weighed_doc, "weighed(parts, weights, rows, out)\n--\n\n"
                          "Write the sum of parts, each times its weight, at these rows; at all if they are None.");

static PyObject *weighed(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    Arrays arrays = {.count = 0};
    PyObject *done = NULL;
    const int64_t *row = NULL;
    Py_ssize_t size;
    float *out;

    if (!given(nargs, 4))
        return NULL;
    if ((out = numbers(&arrays, args[3], FLOATS, -1, &size, 1)) &&
        (args[2] == Py_None || (row = numbers(&arrays, args[2], INT64, size, NULL, 0))) && weigh(args[0], args[1], row, size, out))
        done = Py_NewRef(Py_None);
    let_go(&arrays);
    return done;
}

PyDoc_STRVAR(parts_doc, "parts(text_window, vector_window, vector_own, keyed, ranged, least, text, meaning, own_meaning, keyed_meaning)"
                        "\n--\n\n"
                        "Write the parts that are weighed, scaled. False if a row's words are to stand in for its vector.");

static PyObject *parts(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    Arrays arrays = {.count = 0};
    PyObject *done = NULL;
    Py_ssize_t size;
    double least;
    const float *window, *meant, *vector, *keyed = NULL;
    const uint8_t *ranged = NULL;
    float *text, *meaning, *own, *under_key = NULL;
    int blind = 0;

    if (!given(nargs, 10) || !number(args[5], &least))
        return NULL;
    if (!(window = numbers(&arrays, args[0], FLOATS, -1, &size, 0)) || !(meant = numbers(&arrays, args[1], FLOATS, size, NULL, 0)) ||
        !(vector = numbers(&arrays, args[2], FLOATS, size, NULL, 0)) ||
        (args[3] != Py_None && (!(keyed = numbers(&arrays, args[3], FLOATS, size, NULL, 0)) ||
                                !(under_key = numbers(&arrays, args[9], FLOATS, size, NULL, 1)))) ||
        (args[4] != Py_None && !(ranged = numbers(&arrays, args[4], MASK, size, NULL, 0))) ||
        !(text = numbers(&arrays, args[6], FLOATS, size, NULL, 1)) || !(meaning = numbers(&arrays, args[7], FLOATS, size, NULL, 1)) ||
        !(own = numbers(&arrays, args[8], FLOATS, size, NULL, 1)))
        goto end;
    scale(window, (size_t)size, 0, ranged, text);
    scale(meant, (size_t)size, (float)least, ranged, meaning);
    scale(vector, (size_t)size, (float)least, ranged, own);
    for (Py_ssize_t i = 0; i < size; i++)
        blind |= !isnan(text[i]) && (isnan(meaning[i]) || isnan(own[i]));
    for (Py_ssize_t i = 0; keyed && i < size; i++) {
        under_key[i] = keyed[i] != 0 ? meaning[i] : 0;
        if (keyed[i] != 0 && !(text[i] >= meaning[i] || isnan(meaning[i])))
            text[i] = meaning[i];
    }
    done = PyBool_FromLong(!blind);

end:
    let_go(&arrays);
    return done;
}

PyDoc_STRVAR(top_doc, "top(scores, count)\n--\n\nThe places of the highest, best first, of equals the earlier first, as bytes.");

static PyObject *top(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    Arrays arrays = {.count = 0};
    PyObject *done = NULL;
    Py_ssize_t size, count;
    const float *scores;

    if (!given(nargs, 2) || !whole(args[1], 0, &count))
        return NULL;
    if (!(scores = numbers(&arrays, args[0], FLOATS, -1, &size, 0)))
        goto end;
    count = count < size ? count : size;
    int64_t *kept = calloc((size_t)count + 1, sizeof *kept);
    if (!kept) {
        PyErr_NoMemory();
        goto end;
    }
    size_t held = highest(scores, (size_t)size, (size_t)count, kept);
    done = PyBytes_FromStringAndSize((const char *)kept, (Py_ssize_t)(held * sizeof *kept));
    free(kept);

end:
    let_go(&arrays);
    return done;
}

/* What `fused` is given, apart from what is weighed. */
typedef struct {
    Question asked;
    Texts *texts; /* [places] */
    Py_ssize_t places;
    float *late; /* [rows] */
} Closely;

static int read_texts(Closely *closely, PyObject *places, size_t rows)
{
    size_t sum = 0;
    if (!is_tuple(places, -1))
        return 0;
    closely->places = PyTuple_Size(places);
    closely->texts = calloc((size_t)closely->places + 1, sizeof *closely->texts);
    if (!closely->texts) {
        PyErr_NoMemory();
        return 0;
    }
    for (Py_ssize_t p = 0; p < closely->places; p++) {
        Texts *texts = &closely->texts[p];
        PyObject *place = PyTuple_GetItem(places, p);
        const Held *layout = is_tuple(place, 2) ? held_by(PyTuple_GetItem(place, 0), 10) : NULL;
        if (!layout || !is_dict(texts->tokens = PyTuple_GetItem(place, 1)) ||
            !(texts->slot_of = checked(&layout->views[0], INT64, -1, &texts->size)) ||
            !(texts->row_at = checked(&layout->views[1], INT32, -1, &texts->slots)) ||
            !(texts->flags = checked(&layout->views[9], COUNTS, texts->size, NULL)))
            return 0;
        texts->head = (Py_ssize_t)layout->number;
        sum += (size_t)texts->size;
    }
    if (sum != rows)
        PyErr_SetString(PyExc_ValueError, "partitions have other rows than their channels");
    return sum == rows;
}

/* An item of a tuple as `numbers` gives it, NULL for None; NULL as well once there is an error. */
static const void *item(Arrays *arrays, PyObject *tuple, Py_ssize_t place, const char *format, Py_ssize_t size, Py_ssize_t *found)
{
    PyObject *object = PyErr_Occurred() ? Py_None : PyTuple_GetItem(tuple, place);
    return object == Py_None ? NULL : numbers(arrays, object, format, size, found, 0);
}

/* Reads the arguments of `fused`; 0 and an error where they do not fit together. */
static int read_fusion(Fusion *fusion, Closely *closely, Arrays *arrays, PyObject *const *args)
{
    Question *asked = &closely->asked;
    const uint8_t *ranged;
    Py_ssize_t rows = 0, pairs = 0, limit, candidates;
    double least;
    if (!is_tuple(args[1], 4) || !is_tuple(args[2], SIGNAL_COUNT) || !is_tuple(args[4], 3) || !is_tuple(args[5], 2) ||
        !is_tuple(args[6], 3) || !is_tuple(args[7], 4) || !whole(args[8], 1, &limit) || !whole(args[9], 1, &candidates) ||
        !(fusion->missed = numbers(arrays, args[3], MASK, -1, &rows, 0)) ||
        !(closely->late = numbers(arrays, args[10], FLOATS, rows, NULL, 1)) || !number(PyTuple_GetItem(args[7], 0), &least) ||
        !number(PyTuple_GetItem(args[7], 1), &asked->same) || !number(PyTuple_GetItem(args[7], 2), &asked->echo) ||
        !whole(PyTuple_GetItem(args[7], 3), 0, &asked->asking))
        return 0;
    fusion->text = item(arrays, args[1], 0, FLOATS, rows, NULL);
    fusion->meaning = item(arrays, args[1], 1, FLOATS, rows, NULL);
    fusion->own = item(arrays, args[1], 2, FLOATS, rows, NULL);
    fusion->keyed = item(arrays, args[1], 3, FLOATS, rows, NULL);
    for (Py_ssize_t s = 0; s < SIGNAL_COUNT; s++)
        fusion->signal[s] = item(arrays, args[2], s, FLOATS, rows, NULL);
    fusion->memory = item(arrays, args[4], 0, INT64, -1, &pairs);
    fusion->turn = item(arrays, args[4], 1, INT64, pairs, NULL);
    ranged = item(arrays, args[4], 2, MASK, rows, NULL);
    fusion->broad = item(arrays, args[5], 0, FLOATS, WEIGHT_COUNT, NULL);
    fusion->close = item(arrays, args[5], 1, FLOATS, WEIGHT_COUNT, NULL);
    asked->share = item(arrays, args[6], 1, FLOATS, -1, &asked->pieces);
    asked->axes = item(arrays, args[6], 0, FLOATS, asked->share ? asked->pieces * AXES : -1, NULL);
    asked->window = item(arrays, args[6], 2, FLOATS, -1, &asked->width);
    if (PyErr_Occurred())
        return 0;
    if (!fusion->text || !fusion->meaning || !fusion->own || !fusion->broad || !fusion->close || !asked->share || !asked->axes ||
        !asked->window || (pairs && (!fusion->turn || !ranged))) {
        PyErr_SetString(PyExc_TypeError, "an array is missing");
        return 0;
    }
    if (!inside64(fusion->memory, pairs, 0, rows) || !inside64(fusion->turn, pairs, 0, rows))
        return 0;
    fusion->rows = (size_t)rows;
    fusion->sources = (size_t)pairs;
    fusion->limit = (size_t)limit;
    fusion->candidates = (size_t)candidates;
    fusion->by_text = scale_of(fusion->text, fusion->rows, 0, ranged);
    fusion->by_meaning = scale_of(fusion->meaning, fusion->rows, (float)least, ranged);
    fusion->by_own = scale_of(fusion->own, fusion->rows, (float)least, ranged);
    return read_texts(closely, args[0], fusion->rows);
}

/* Compares the rows that were looked at. How many are not known; -1 and an error where it cannot. */
static Py_ssize_t look_closer(Looks *looks, const Closely *closely, float *own, float *around)
{
    const Question *asked = &closely->asked;
    Py_ssize_t missing = 0, count = (Py_ssize_t)looks->count, end = 0;
    int64_t start = 0;
    float *scores = looks->again; /* until there are second scores */
    for (Py_ssize_t p = 0, from = 0; p < closely->places; start += closely->texts[p++].size, from = end) {
        const Texts *texts = &closely->texts[p];
        for (; end < count && looks->sorted[end] < start + texts->size; end++)
            looks->sorted[end] -= start;
        Py_ssize_t none = compare_all(texts, asked, looks->sorted + from, end - from, own + from * asked->pieces,
                                      around + from * asked->pieces, scores + from);
        if (none < 0)
            return -1;
        missing += none;
        for (Py_ssize_t i = from; i < end; i++) {
            looks->sorted[i] += start;
            looks->late[looks->at[looks->sorted[i]]] = closely->late[looks->sorted[i]] = scores[i];
        }
    }
    return missing;
}

/* By place the rows beside the first one, which becomes the row of the place; None where there are none. */
static PyObject *beside(const Looks *looks)
{
    if (looks->member_count == looks->shows || !looks->member_count)
        return Py_NewRef(Py_None);
    PyObject *all = PyTuple_New((Py_ssize_t)looks->shows);
    for (size_t place = 0, m = 0; all && place < looks->shows; place++) {
        size_t first = m;
        while (m < looks->member_count && looks->members[m].place == place)
            m++;
        PyObject *rest = PyTuple_New((Py_ssize_t)(m - first) - 1);
        for (size_t i = first + 1; rest && i < m; i++) {
            PyObject *row = PyLong_FromLongLong(looks->members[i].row);
            if (!row || PyTuple_SetItem(rest, (Py_ssize_t)(i - first) - 1, row) < 0)
                Py_CLEAR(rest);
        }
        looks->shown[place].row = looks->members[first].row;
        if (!rest || PyTuple_SetItem(all, (Py_ssize_t)place, rest) < 0)
            Py_CLEAR(all);
    }
    return all;
}

static PyObject *bytes_of(const void *from, size_t count, size_t size)
{
    return PyBytes_FromStringAndSize(from, (Py_ssize_t)(count * size));
}

/* What `fused` returns. */
static PyObject *shown(Looks *looks, PyObject *own, PyObject *around, Py_ssize_t missing)
{
    PyObject *others = beside(looks), *rows = bytes_of(NULL, looks->shows, sizeof(int64_t)), *done = NULL;
    PyObject *scores = bytes_of(NULL, looks->shows, sizeof(float)), *looked = bytes_of(looks->sorted, looks->count, sizeof(int64_t));
    if (others && rows && scores && looked) {
        for (size_t i = 0; i < looks->shows; i++) {
            memcpy(PyBytes_AsString(rows) + i * sizeof(int64_t), &looks->shown[i].row, sizeof(int64_t));
            memcpy(PyBytes_AsString(scores) + i * sizeof(float), &looks->shown[i].worth, sizeof(float));
        }
        done = Py_BuildValue("OOOOOOn", rows, scores, others, looked, own, around, missing);
    }
    Py_XDECREF(others);
    Py_XDECREF(rows);
    Py_XDECREF(scores);
    Py_XDECREF(looked);
    return done;
}

PyDoc_STRVAR(fused_doc,
             "fused(places, channels, signals, missed, sources, weights, pieces, how, limit, candidates, late)\n--\n\n"
             "The order of `blend`: rows and scores as bytes, and the rows beside each (None for all: none); then the rows that were\n"
             "compared as bytes, what `likeness` writes of them into own and around, and how many of them have no score.\n"
             "Their scores are written to late, [rows]. None where words are to stand in for a vector, or none has a score.\n"
             "A place is a layout and its word pieces; channels are text, meaning, own meaning, keyed; sources are memories, turns\n"
             "and the mask of rows that are no such memory; pieces are axes, share and window; how is least, same, echo, asking.");

static PyObject *fused(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    Arrays arrays = {.count = 0};
    Fusion fusion = {0};
    Closely closely = {0};
    Looks looks = {0};
    PyObject *done = NULL, *own = NULL, *around = NULL;

    if (!given(nargs, 11) || !read_fusion(&fusion, &closely, &arrays, args))
        goto end;
    if (!begin_looks(&looks, &fusion)) {
        PyErr_NoMemory();
        goto end;
    }
    if (!look_first(&looks, &fusion)) {
        done = Py_NewRef(Py_None);
        goto end;
    }
    own = bytes_of(NULL, looks.count * (size_t)closely.asked.pieces, sizeof(float));
    around = bytes_of(NULL, looks.count * (size_t)closely.asked.pieces, sizeof(float));
    if (!own || !around)
        goto end;
    for (size_t i = 0; i < fusion.rows; i++)
        closely.late[i] = NAN;
    Py_ssize_t missing = look_closer(&looks, &closely, (float *)(void *)PyBytes_AsString(own), (float *)(void *)PyBytes_AsString(around));
    if (missing < 0)
        goto end;
    if ((size_t)missing == looks.count) {
        done = Py_NewRef(Py_None);
        goto end;
    }
    /* others may have written to them while their lock was let go */
    if (!inside64(fusion.memory, (Py_ssize_t)fusion.sources, 0, (Py_ssize_t)fusion.rows) ||
        !inside64(fusion.turn, (Py_ssize_t)fusion.sources, 0, (Py_ssize_t)fusion.rows))
        goto end;
    look_again(&looks, &fusion);
    done = shown(&looks, own, around, missing);

end:
    Py_XDECREF(own);
    Py_XDECREF(around);
    end_looks(&looks);
    free(closely.texts);
    let_go(&arrays);
    return done;
}

/* ---- relevance ------------------------------------------------------------------------------------------- */

/* The sum of weighted features, one after the other, and of the constant behind the weights. */
static float log_odds_of(const float *known, const float *weights, Py_ssize_t count)
{
    float sum = 0;
    for (Py_ssize_t k = 0; k < count; k++)
        sum += known[k] * weights[k];
    return sum + weights[count];
}

static float limited(float log_odds)
{
    return log_odds < -30 ? -30 : log_odds > 30 ? 30 : log_odds;
}

/* What was compared closely, and what is known of the best of it. */
typedef struct {
    const int64_t *row; /* [count], ascending */
    Py_ssize_t count;
    const float *own, *like;
    float best_like, best_around, best_cosine;
} Compared;

static void find_best(Compared *compared, const float *around, const float *cosine)
{
    compared->best_like = compared->best_around = compared->best_cosine = -1;
    for (Py_ssize_t i = 0; i < compared->count; i++) { /* NaN is not above anything */
        float near = around[compared->row[i]], alone = cosine[compared->row[i]];
        compared->best_like = compared->like[i] > compared->best_like ? compared->like[i] : compared->best_like;
        compared->best_around = near > compared->best_around ? near : compared->best_around;
        compared->best_cosine = alone > compared->best_cosine ? alone : compared->best_cosine;
    }
}

/* How much liker others' words are to the question than those of whom it names; at most 0. */
static double misattributed(const Compared *compared, const float *speaker)
{
    float best[2] = {-INFINITY, -INFINITY};
    for (Py_ssize_t i = 0; i < compared->count; i++) {
        float *whose = &best[speaker[compared->row[i]] > 0];
        *whose = compared->own[i] > *whose ? compared->own[i] : *whose;
    }
    float apart = best[1] - best[0];
    return best[0] > -INFINITY && best[1] > -INFINITY && apart < 0 ? apart : 0;
}

/* The place of `row` among what was compared, -1 if it was not. */
static Py_ssize_t place_among(const Compared *compared, int64_t row)
{
    Py_ssize_t low = 0, high = compared->count;
    while (low < high) {
        Py_ssize_t middle = (low + high) / 2;
        if (compared->row[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low < compared->count && compared->row[low] == row ? low : -1;
}

enum { OF_ROW = 15, FIRST_KEY = 3, FIRST_MEMORY = 4, MOST_ASKED = 32 };

/* Reads the features of the question; a whole number stands for one that is only known here. */
static int read_asked(PyObject *asked, const double *known, float *into)
{
    for (Py_ssize_t i = 0; i < PyList_Size(asked); i++) {
        PyObject *one = PyList_GetItem(asked, i);
        double value;
        Py_ssize_t which;
        if (PyLong_CheckExact(one)) {
            if (!whole(one, 0, &which))
                return 0;
            if (which > FIRST_MEMORY) {
                PyErr_SetString(PyExc_ValueError, "there is no such feature");
                return 0;
            }
            value = known[which];
        } else if (!number(one, &value)) {
            return 0;
        }
        into[i] = (float)value;
    }
    return 1;
}

PyDoc_STRVAR(evidence_doc,
             "evidence(looked, own, like, around, cosine, speaker, rows, places, channels, logs, size, few, asked, answered, right, out)"
             "\n--\n\n"
             "Write the log odds that there is an answer, and that each row is it, negated. Returns whether a row was not compared,\n"
             "and whether one asks. `channels` are those of features of a row, None where there is none; `asked` are the features\n"
             "of the question: numbers, or 0 to 4 for the best similarity, cosine around and own, and the first row's key and kind.");

static PyObject *evidence(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    Arrays arrays = {.count = 0};
    Compared compared = {0};
    PyObject *done = NULL;
    Py_ssize_t size, count, logs, features;
    double log_size, few;
    const int64_t *row, *place;
    const float *around, *cosine, *speaker = NULL, *answered, *right, *channel[6] = {0};
    const double *log_of;
    float *out, asked[MOST_ASKED], table[OF_ROW];
    int blind = 0, asks = 0;

    if (!given(nargs, 16) || !number(args[10], &log_size) || !number(args[11], &few))
        return NULL;
    if (!PyTuple_Check(args[8]) || PyTuple_Size(args[8]) != 6 || !PyList_Check(args[12]) || PyList_Size(args[12]) > MOST_ASKED) {
        PyErr_SetString(PyExc_TypeError, "channels must be a tuple of six, and features of the question a list");
        return NULL;
    }
    features = PyList_Size(args[12]);
    if (!(compared.row = numbers(&arrays, args[0], INT64, -1, &compared.count, 0)) ||
        !(compared.own = numbers(&arrays, args[1], FLOATS, compared.count, NULL, 0)) ||
        !(compared.like = numbers(&arrays, args[2], FLOATS, compared.count, NULL, 0)) ||
        !(around = numbers(&arrays, args[3], FLOATS, -1, &size, 0)) || !(cosine = numbers(&arrays, args[4], FLOATS, size, NULL, 0)) ||
        (args[5] != Py_None && !(speaker = numbers(&arrays, args[5], FLOATS, size, NULL, 0))) ||
        !(row = numbers(&arrays, args[6], INT64, -1, &count, 0)) || !(place = numbers(&arrays, args[7], INT64, count, NULL, 0)) ||
        !(log_of = numbers(&arrays, args[9], "d", -1, &logs, 0)) ||
        !(answered = numbers(&arrays, args[13], FLOATS, features + 1, NULL, 0)) ||
        !(right = numbers(&arrays, args[14], FLOATS, OF_ROW + 1, NULL, 0)) ||
        !(out = numbers(&arrays, args[15], FLOATS, count + 1, NULL, 1)))
        goto end;
    for (Py_ssize_t each = 0; each < 6; each++) {
        PyObject *one = PyTuple_GetItem(args[8], each);
        if (one != Py_None && !(channel[each] = numbers(&arrays, one, FLOATS, size, NULL, 0)))
            goto end;
    }
    if (!inside64(compared.row, compared.count, 0, size) || !inside64(row, count, 0, size) || !inside64(place, count, 0, logs))
        goto end;
    if (!count) {
        PyErr_SetString(PyExc_ValueError, "there is no row");
        goto end;
    }
    find_best(&compared, around, cosine);
    /* asking, agent, memory, key, date, fullness of the first row; of them only two are asked for */
    double known[] = {
        compared.best_like + (speaker ? misattributed(&compared, speaker) : 0), compared.best_around, compared.best_cosine,
        channel[3] ? channel[3][row[0]] : 0, channel[2] ? channel[2][row[0]] : 0,
    };
    if (!read_asked(args[12], known, asked))
        goto end;
    out[0] = -limited(log_odds_of(asked, answered, features));
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_ssize_t at = place_among(&compared, row[i]);
        float like = at < 0 ? NAN : compared.like[at], near = at < 0 ? NAN : around[row[i]];
        for (size_t each = 0; each < 6; each++)
            table[each] = channel[each] ? channel[each][row[i]] : 0;
        table[6] = (float)log_of[place[i]];
        table[7] = place[i] == 0;
        table[8] = (float)log_size;
        table[9] = (float)few;
        table[10] = (float)(log_of[place[i]] * log_size);
        table[11] = at < 0 ? NAN : compared.own[at];
        table[12] = like;
        table[13] = like - compared.best_like;
        table[14] = isnan(near) ? 0 : near;
        out[i + 1] = -limited(log_odds_of(table, right, OF_ROW));
        blind |= isnan(like) != 0;
        asks |= channel[0] && channel[0][row[i]] > 0;
    }
    done = PyTuple_Pack(2, blind ? Py_True : Py_False, asks ? Py_True : Py_False);

end:
    let_go(&arrays);
    return done;
}

PyDoc_STRVAR(likely_doc, "likely(odds, places, scale, least, most, out)\n--\n\n"
                         "Write how likely each row answers, by e to the power of what `evidence` wrote.");

static PyObject *likely(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    Arrays arrays = {.count = 0};
    PyObject *done = NULL;
    Py_ssize_t count;
    double by, least, most;
    const float *odds;
    const int64_t *place;
    float *out;

    if (!given(nargs, 6) || !number(args[2], &by) || !number(args[3], &least) || !number(args[4], &most))
        return NULL;
    if (!(out = numbers(&arrays, args[5], FLOATS, -1, &count, 1)) || !(odds = numbers(&arrays, args[0], FLOATS, count + 1, NULL, 0)) ||
        !(place = numbers(&arrays, args[1], INT64, count, NULL, 0)))
        goto end;
    float best = (float)least, answered = 1 / (1 + odds[0]);
    for (Py_ssize_t i = 0; i < count; i++) {
        out[i] = 1 / (1 + odds[i + 1]);
        best = place[i] == 0 && out[i] > best ? out[i] : best;
    }
    float damped = (float)(by / sqrt((double)best));
    for (Py_ssize_t i = 0; i < count; i++) {
        float right = out[i] * damped, found = answered * right;
        out[i] = found > (float)most ? (float)most : found;
    }
    done = Py_NewRef(Py_None);

end:
    let_go(&arrays);
    return done;
}

/* ---- the module ------------------------------------------------------------------------------------------ */

PyDoc_STRVAR(instructions_doc, "instructions()\n--\n\nThe sets of instructions that this processor has, the best first.");

static PyObject *instructions(PyObject *module, PyObject *nothing)
{
    (void)module;
    (void)nothing;
    PyObject *names = PyList_New(0);
    for (const Instructions *set = INSTRUCTIONS; names && set->name; set++) {
        if (!set->runs_here())
            continue;
        PyObject *name = PyUnicode_FromString(set->name);
        if (!name || PyList_Append(names, name) < 0)
            Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

PyDoc_STRVAR(use_doc, "use(name)\n--\n\nGo on with these instructions, and return the name of those used so far.");

static PyObject *use(PyObject *module, PyObject *name)
{
    (void)module;
    for (const Instructions *set = INSTRUCTIONS; set->name; set++)
        if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, set->name) == 0 && set->runs_here()) {
            PyObject *before = PyUnicode_FromString(chosen->name);
            if (before)
                chosen = set;
            return before;
        }
    PyErr_Format(PyExc_ValueError, "this processor has no %R", name);
    return NULL;
}

#define FAST(name) {#name, (PyCFunction)(void (*)(void))(name), METH_FASTCALL, name##_doc}

static PyMethodDef METHODS[] = {
    FAST(hold), FAST(likeness), FAST(cosines), FAST(channels), FAST(answers), FAST(words), FAST(find), FAST(scaled), FAST(parts), FAST(weighed), FAST(top), FAST(fused), FAST(evidence), FAST(likely),
    {"instructions", instructions, METH_NOARGS, instructions_doc},
    {"use", use, METH_O, use_doc},
    {NULL, NULL, 0, NULL},
};

static int begin(PyObject *module)
{
    for (chosen = INSTRUCTIONS; !chosen->runs_here();)
        chosen++;
    return PyModule_AddIntConstant(module, "INTERFACE", INTERFACE);
}

static PyModuleDef_Slot SLOTS[] = {{Py_mod_exec, (void *)begin}, {0, NULL}};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "_kernel", "The compiled parts of Echoic's ranking.", 0, METHODS, SLOTS, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernel(void)
{
    return PyModuleDef_Init(&MODULE);
}
