/* A page's links, declarations and text in one pass over its bytes: `scanning.py`, compiled.
 *
 * That module says what is read and why, and is the reference: both give the same for every input, which the tests
 * hold. Nothing here allocates by what a page says, recurses, or looks at a byte more than a few times, so that a
 * hostile page costs what its size says.
 *
 * Source: HTML Standard, "tokenization".
 */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

typedef const unsigned char *Text;

/* What a tag is to us. The order is that of the ranges below. */
enum Tag {
    OTHER, /* begins the body */
    ANCHOR, AREA, FRAME, FRAMESET, IFRAME, INPUT, KEYGEN, MATH, NOEMBED, PLAINTEXT, SELECT, SVG, TEXTAREA, XMP,
    HEADING, /* may stand in the head, and says nothing */
    BASE, HTML, LINK, META, NOFRAMES, SCRIPT, STYLE, TEMPLATE, TITLE,
};

/* By first letter. */
static const struct { const char *name; unsigned char size, tag; } NAMES[] = {
    {"a", 1, ANCHOR}, {"area", 4, AREA}, {"base", 4, BASE}, {"basefont", 8, HEADING}, {"bgsound", 7, HEADING},
    {"frame", 5, FRAME}, {"frameset", 8, FRAMESET}, {"head", 4, HEADING}, {"html", 4, HTML}, {"iframe", 6, IFRAME},
    {"input", 5, INPUT}, {"keygen", 6, KEYGEN}, {"link", 4, LINK}, {"math", 4, MATH}, {"meta", 4, META},
    {"noembed", 7, NOEMBED}, {"noframes", 8, NOFRAMES}, {"noscript", 8, HEADING}, {"plaintext", 9, PLAINTEXT},
    {"script", 6, SCRIPT}, {"select", 6, SELECT}, {"style", 5, STYLE}, {"svg", 3, SVG}, {"template", 8, TEMPLATE},
    {"textarea", 8, TEXTAREA}, {"title", 5, TITLE}, {"xmp", 3, XMP},
};

/* Where the names with each first letter begin; filled when the module is loaded. */
static unsigned char FIRST_NAMES[26];

static const char *const TAG_NAMES[] = {
    [IFRAME] = "iframe", [BASE] = "base", [LINK] = "link", [META] = "meta",
};

enum { LONGEST_NAME = 9, LONGEST_ENTITY = 32, LONGEST_LEGACY = 6, MOST_BYTES = 12, MOST_READ = 4, DECLARATIONS_LIMIT = 50000 };

static PyObject *entities; /* html.entities.html5 */

/* -- characters -------------------------------------------------------------------------------------------- */

static inline int is_blank(unsigned char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f'; }
static inline int is_space(unsigned char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static inline int is_letter(unsigned char c) { return (unsigned char)((c | 0x20) - 'a') < 26; }
static inline int is_digit(unsigned char c) { return (unsigned char)(c - '0') < 10; }
static inline int ends_name(unsigned char c) { return c == '>' || c == '/' || is_blank(c); }
static inline unsigned char lower(unsigned char c) { return (unsigned char)(c - 'A') < 26 ? c | 0x20 : c; }

static int equals(Text at, Py_ssize_t size, const char *name)
{
    for (Py_ssize_t i = 0; i < size; i++)
        if (!name[i] || lower(at[i]) != (unsigned char)name[i]) return 0;
    return name[size] == 0;
}

static Text find(Text from, Text end, int c)
{
    Text at = from < end ? memchr(from, c, end - from) : NULL;
    return at ? at : end;
}

static Py_ssize_t utf8(unsigned int code, unsigned char *out)
{
    if (code < 0x80) { out[0] = code; return 1; }
    if (code < 0x800) { out[0] = 0xC0 | code >> 6; out[1] = 0x80 | (code & 0x3F); return 2; }
    if (code < 0x10000) {
        out[0] = 0xE0 | code >> 12; out[1] = 0x80 | (code >> 6 & 0x3F); out[2] = 0x80 | (code & 0x3F);
        return 3;
    }
    out[0] = 0xF0 | code >> 18; out[1] = 0x80 | (code >> 12 & 0x3F);
    out[2] = 0x80 | (code >> 6 & 0x3F); out[3] = 0x80 | (code & 0x3F);
    return 4;
}

static const unsigned short C1[32] = {
    0x20AC, 0x81, 0x201A, 0x192, 0x201E, 0x2026, 0x2020, 0x2021, 0x2C6, 0x2030, 0x160, 0x2039, 0x152, 0x8D, 0x17D,
    0x8F, 0x90, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x2DC, 0x2122, 0x161, 0x203A, 0x153, 0x9D,
    0x17E, 0x178,
};

static Text numeric_reference(Text at, Text end, unsigned char *out, Py_ssize_t *size)
{
    int hex = at < end && (*at | 0x20) == 'x';
    unsigned int code = 0;
    Text digits = at += hex;
    for (; at < end; at++) {
        unsigned int digit;
        if (is_digit(*at)) digit = *at - '0';
        else if (hex && is_letter(*at) && (*at | 0x20) <= 'f') digit = (*at | 0x20) - 'a' + 10;
        else break;
        if (code <= 0x10FFFF) code = code * (hex ? 16 : 10) + digit;
    }
    if (at == digits) return NULL;
    if (at < end && *at == ';') at++;
    if (code == 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) code = 0xFFFD;
    else if (code >= 0x80 && code < 0xA0) code = C1[code - 0x80];
    *size = utf8(code, out);
    return at;
}

static int named(Text name, Py_ssize_t length, unsigned char *out, Py_ssize_t *size)
{
    PyObject *key = PyUnicode_DecodeASCII((const char *)name, length, NULL);
    if (!key) return -1;
    PyObject *value = PyDict_GetItemWithError(entities, key); /* borrowed */
    Py_DECREF(key);
    if (!value) return PyErr_Occurred() ? -1 : 0;
    Py_ssize_t bytes;
    const char *text = PyUnicode_AsUTF8AndSize(value, &bytes);
    if (!text) return -1;
    if (bytes > MOST_BYTES) return 0;
    memcpy(out, text, bytes);
    *size = bytes;
    return 1;
}

/* The character reference whose `&` stands before `at`: where it ends; NULL for none, with an exception for an error.
   At most MOST_BYTES are written. */
static Text reference(Text at, Text end, int in_attribute, unsigned char *out, Py_ssize_t *size)
{
    if (at < end && *at == '#') return numeric_reference(at + 1, end, out, size);
    Text stop = at;
    while (stop < end && stop - at < LONGEST_ENTITY && (is_letter(*stop) || is_digit(*stop))) stop++;
    if (stop == at) return NULL;
    if (stop < end && *stop == ';') {
        if (stop - at == 3 && !memcmp(at, "amp", 3)) { out[0] = '&'; *size = 1; return stop + 1; }
        int found = named(at, stop + 1 - at, out, size);
        if (found) return found > 0 ? stop + 1 : NULL;
    }
    for (Py_ssize_t length = stop - at > LONGEST_LEGACY ? LONGEST_LEGACY : stop - at; length > 1; length--) {
        int found = named(at, length, out, size);
        if (found < 0) return NULL;
        if (!found) continue;
        Text next = at + length;
        if (in_attribute && next < end && (*next == '=' || is_letter(*next) || is_digit(*next))) return NULL;
        return next;
    }
    return NULL;
}

/* -- what is being made -------------------------------------------------------------------------------------- */

typedef struct {
    Text end;
    /* the text: white space folded */
    unsigned char *out, *put;
    Py_ssize_t room;
    int wants_text;
    /* the links */
    PyObject *events, *places; /* places: text of a link -> its index among the events */
    Py_ssize_t links, max_links, declarations;
    PyObject *title, *language;
    int odd, cut, in_head, in_select, drawn_title, failed;
    Py_ssize_t templates, drawings, formulas;
} Scan;

static int is_foreign(const Scan *s) { return s->drawings || s->formulas; }

/* A no-break space, and the bytes that are white space or may begin one. */
static const unsigned char HARD[2] = {0xC2, 0xA0};
static const unsigned char MARKED[256] = {
    [' '] = 1, ['\t'] = 1, ['\n'] = 1, ['\v'] = 1, ['\f'] = 1, ['\r'] = 1, [0xC2] = 1,
};

/* Room for `size` more bytes and a blank. */
static int reserve(Scan *s, Py_ssize_t size)
{
    Py_ssize_t used = s->put - s->out;
    if (s->room - used > size + 1) return 0;
    Py_ssize_t room = s->room + s->room / 2 + size + 64;
    unsigned char *out = PyMem_Realloc(s->out, room);
    if (!out) { PyErr_NoMemory(); s->failed = 1; return -1; }
    s->out = out; s->put = out + used; s->room = room;
    return 0;
}

/* A blank behind the text so far, unless it has one. Room for it is always left. */
static void part(Scan *s)
{
    if (s->put != s->out && s->put[-1] != ' ') *s->put++ = ' ';
}

/* Text with its white space folded. Words are short: to copy each byte and go on or not costs less than to ask for
   each where it ends. */
static void put_text(Scan *s, Text from, Text end)
{
    if (!s->wants_text || reserve(s, end - from + 1)) return;
    unsigned char *put = s->put;
    int behind_blank = put == s->out || put[-1] == ' ';
    while (from < end) {
        unsigned char c = *from++;
        int blank = MARKED[c];
        if (c == HARD[0]) {
            blank = from < end && *from == HARD[1];
            from += blank;
        }
        *put = blank ? ' ' : c;
        put += !(blank & behind_blank);
        behind_blank = blank;
    }
    s->put = put;
}

static int is_white(Text from, Text end)
{
    while (from < end && is_blank(*from)) from++;
    return from == end;
}

/* Character data, with its references where they are read. */
static void data(Scan *s, Text from, Text end, int references, int counts)
{
    if (s->in_head && counts && !is_white(from, end)) s->in_head = 0;
    if (!s->wants_text || s->templates) return;
    while (references && from < end) {
        Text mark = find(from, end, '&');
        put_text(s, from, mark);
        if (mark == end) return;
        unsigned char out[MOST_BYTES];
        Py_ssize_t size;
        Text next = reference(mark + 1, end, 0, out, &size);
        if (next) { put_text(s, out, out + size); from = next; continue; }
        if (PyErr_Occurred()) { s->failed = 1; return; }
        put_text(s, mark, mark + 1);
        from = mark + 1;
    }
    put_text(s, from, end);
}

/* -- attributes ----------------------------------------------------------------------------------------------- */

typedef struct { Text name, name_end, value, value_end; } Attribute;

/* The next attribute from `at` on; *at is behind it. 1: found; 0: the tag ended, *at is behind its `>`; -1: the page
   ended first. *closes is set where the tag closes itself. */
static int next_attribute(Text *from, Text end, Attribute *found, int *closes)
{
    Text at = *from;
    int slash = 0;
    for (; at < end && (is_blank(*at) || *at == '/'); at++) slash = *at == '/';
    if (at == end) return -1;
    if (*at == '>') { *closes = slash; *from = at + 1; return 0; }
    found->name = at++;
    while (at < end && *at != '=' && !ends_name(*at)) at++;
    found->name_end = at;
    found->value = found->value_end = at;
    Text next = at;
    while (next < end && is_blank(*next)) next++;
    if (next == end) return -1;
    if (*next != '=') { *from = at; return 1; }
    at = next + 1;
    while (at < end && is_blank(*at)) at++;
    if (at == end) return -1;
    if (*at == '"' || *at == '\'') {
        Text close = find(at + 1, end, *at);
        if (close == end) return -1;
        found->value = at + 1; found->value_end = close;
        at = close + 1;
    } else {
        found->value = at;
        while (at < end && *at != '>' && !is_blank(*at)) at++;
        if (at == end) return -1;
        found->value_end = at;
    }
    *from = at;
    return 1;
}

/* Behind the `>` of a tag of which nothing is read; NULL where the page ends first. */
static Text pass_tag(Text at, Text end, int *closes)
{
    Text stop = find(at, end, '>');
    if (stop == end) return NULL;
    if (find(at, stop, '=') == stop) { *closes = stop > at && stop[-1] == '/'; return stop + 1; }
    Attribute attribute;
    int more;
    while ((more = next_attribute(&at, end, &attribute, closes)) > 0) ;
    return more ? NULL : at;
}

/* A value or a title as text: references read, line ends as LF. */
static PyObject *decoded(Text from, Text end, int in_attribute)
{
    if (find(from, end, '&') == end && find(from, end, '\r') == end)
        return PyUnicode_DecodeUTF8((const char *)from, end - from, "replace");
    unsigned char *out = PyMem_Malloc((end - from) * 2 + MOST_BYTES);
    if (!out) return PyErr_NoMemory();
    unsigned char *put = out;
    while (from < end) {
        Py_ssize_t size;
        if (*from == '&') {
            Text next = reference(from + 1, end, in_attribute, put, &size);
            if (next) { put += size; from = next; continue; }
            if (PyErr_Occurred()) { PyMem_Free(out); return NULL; }
        }
        if (*from == '\r') {
            from += from + 1 < end && from[1] == '\n' ? 2 : 1;
            *put++ = '\n';
            continue;
        }
        *put++ = *from++;
    }
    PyObject *text = PyUnicode_DecodeUTF8((const char *)out, put - out, "replace");
    PyMem_Free(out);
    return text;
}

/* A value's bytes with its references read: in place where it has none, else in *made, a bytes object. */
static int plain(Text *from, Text *end, PyObject **made)
{
    *made = NULL;
    if (find(*from, *end, '&') == *end && find(*from, *end, '\r') == *end) return 0;
    PyObject *text = decoded(*from, *end, 1);
    if (!text) return -1;
    *made = PyUnicode_AsUTF8String(text);
    Py_DECREF(text);
    if (!*made) return -1;
    *from = (Text)PyBytes_AsString(*made);
    *end = *from + PyBytes_Size(*made);
    return 0;
}

static int says_nofollow(Text at, Text end)
{
    while (at < end) {
        while (at < end && is_space(*at)) at++;
        Text word = at;
        while (at < end && !is_space(*at)) at++;
        if (at - word == 8 && equals(word, 8, "nofollow")) return 1;
    }
    return 0;
}

/* Whether an address may be one of http or https: it has no scheme, or one of these. */
static int may_be_http(Text at, Text end)
{
    if (at == end || !is_letter(*at)) return 1;
    Text stop = at;
    while (stop < end && (is_letter(*stop) || is_digit(*stop) || *stop == '+' || *stop == '-' || *stop == '.')) stop++;
    if (stop == end || *stop != ':') return 1;
    return equals(at, stop - at, "http") || equals(at, stop - at, "https");
}

/* -- elements ---------------------------------------------------------------------------------------------------- */

static int add_link(Scan *s, Text from, Text end, int nofollow)
{
    PyObject *text = PyUnicode_DecodeUTF8((const char *)from, end - from, "replace");
    if (!text) return -1;
    int status = -1;
    PyObject *event = NULL, *place = PyDict_GetItemWithError(s->places, text); /* borrowed */
    if (!place && PyErr_Occurred()) goto done;
    if (place) {
        status = 0;
        if (nofollow) goto done;
        Py_ssize_t index = PyLong_AsSsize_t(place);
        if (PyTuple_GetItem(PyList_GetItem(s->events, index), 1) == Py_True) {
            event = Py_BuildValue("(OO)", text, Py_False);
            status = event ? PyList_SetItem(s->events, index, event) : -1;
        }
        goto done;
    }
    status = 0;
    if (s->links > s->max_links) goto done;
    s->links++;
    status = -1;
    place = PyLong_FromSsize_t(PyList_Size(s->events));
    event = Py_BuildValue("(OO)", text, nofollow ? Py_True : Py_False);
    if (place && event && !PyList_Append(s->events, event)) status = PyDict_SetItem(s->places, text, place);
    Py_XDECREF(place);
    Py_XDECREF(event);
done:
    Py_DECREF(text);
    return status;
}

/* A link; *at is behind its name, and then behind its tag. */
static int anchor(Scan *s, Text *at)
{
    Attribute found, href = {0}, other = {0}, rel = {0};
    int more, closes;
    while ((more = next_attribute(at, s->end, &found, &closes)) > 0) {
        Py_ssize_t size = found.name_end - found.name;
        if (size == 4 && !href.name && equals(found.name, 4, "href")) href = found;
        else if (size == 3 && !rel.name && equals(found.name, 3, "rel")) rel = found;
        else if (size == 10 && !other.name && equals(found.name, 10, "xlink:href")) other = found;
    }
    if (more < 0) return 1;
    if (!href.name && is_foreign(s)) href = other;
    if (!href.name) return 0;
    PyObject *made, *said = NULL;
    Text from = href.value, end = href.value_end;
    if (plain(&from, &end, &made)) return -1;
    int status = 0, nofollow = 0;
    while (from < end && *from <= ' ') from++;
    while (from < end && end[-1] <= ' ') end--;
    end = find(from, end, '#');
    if (may_be_http(from, end)) {
        if (rel.name) {
            Text rel_from = rel.value, rel_end = rel.value_end;
            status = plain(&rel_from, &rel_end, &said);
            nofollow = !status && says_nofollow(rel_from, rel_end);
        }
        if (!status) status = add_link(s, from, end, nofollow);
    }
    Py_XDECREF(made);
    Py_XDECREF(said);
    return status;
}

/* What is read of declarations; without the first there is nothing to say. */
static const char *const *read_of(enum Tag tag)
{
    static const char *const of_base[] = {"href", NULL}, *const of_frame[] = {"src", NULL};
    static const char *const of_link[] = {"href", "rel", "hreflang", "type", NULL};
    static const char *const of_meta[] = {"content", "name", "http-equiv", NULL};
    switch (tag) {
    case BASE: return of_base;
    case IFRAME: return of_frame;
    case LINK: return of_link;
    default: return of_meta;
    }
}

/* Attributes of these names as a dict, the first of each. */
static PyObject *said(const Attribute *found, const char *const *names)
{
    PyObject *all = PyDict_New();
    for (int i = 0; all && names[i]; i++) {
        if (!found[i].name) continue;
        PyObject *value = decoded(found[i].value, found[i].value_end, 1);
        if (!value || PyDict_SetItemString(all, names[i], value)) Py_CLEAR(all);
        Py_XDECREF(value);
    }
    return all;
}

/* An element that declares something, or embeds a page. */
static int declaration(Scan *s, Text *at, enum Tag tag)
{
    const char *const *names = read_of(tag);
    Attribute each, found[MOST_READ] = {{0}};
    int more, closes;
    while ((more = next_attribute(at, s->end, &each, &closes)) > 0)
        for (int i = 0; names[i]; i++)
            if (!found[i].name && equals(each.name, each.name_end - each.name, names[i])) found[i] = each;
    if (more < 0) return 1;
    if (!found[0].name) return 0;
    if (s->declarations == DECLARATIONS_LIMIT) { s->cut = 1; return 0; }
    s->declarations++;
    PyObject *all = said(found, names);
    PyObject *event = all ? Py_BuildValue("(sOO)", TAG_NAMES[tag], all, s->in_head ? Py_True : Py_False) : NULL;
    int status = event ? PyList_Append(s->events, event) : -1;
    Py_XDECREF(event);
    Py_XDECREF(all);
    return status;
}

static int root(Scan *s, Text *at)
{
    Attribute found, lang = {0};
    int more, closes;
    while ((more = next_attribute(at, s->end, &found, &closes)) > 0)
        if (!lang.name && equals(found.name, found.name_end - found.name, "lang")) lang = found;
    if (more < 0) return 1;
    if (is_foreign(s)) s->odd = 1;
    if (!lang.name || s->language) return 0;
    s->language = decoded(lang.value, lang.value_end, 1);
    return s->language ? 0 : -1;
}

/* -- text that is no markup ---------------------------------------------------------------------------------------- */

/* Where the end tag of an element of raw text begins, from `at` on; the end of the page if nowhere. */
static Text end_of_raw(Text at, Text end, const char *name, Py_ssize_t size)
{
    while ((at = find(at, end, '<')) < end) {
        if (end - at > size + 2 && at[1] == '/' && equals(at + 2, size, name) && ends_name(at[size + 2])) return at;
        at++;
    }
    return end;
}

/* The same for a script, which may hold what looks like its end within a comment that holds a script. */
static Text end_of_script(Text at, Text end)
{
    enum { PLAIN, ESCAPED, TWICE } state = PLAIN;
    while (at < end) {
        if (state != PLAIN && *at == '-' && end - at > 2 && at[1] == '-' && at[2] == '>') { state = PLAIN; at += 3; }
        else if (*at != '<') {
            Text next = find(at + 1, end, '<');
            if (state != PLAIN) { Text dash = find(at + 1, next, '-'); next = dash; }
            at = next;
        } else if (state == PLAIN && end - at > 3 && !memcmp(at, "<!--", 4)) {
            state = ESCAPED;
            at += 2; /* its own dashes may end it */
        } else if (state == ESCAPED && end - at > 7 && equals(at + 1, 6, "script") && ends_name(at[7])) {
            state = TWICE;
            at += 7;
        } else if (end - at > 8 && at[1] == '/' && equals(at + 2, 6, "script") && ends_name(at[8])) {
            if (state != TWICE) return at;
            state = ESCAPED;
            at += 8;
        } else at++;
    }
    return end;
}

static const char *raw_name(enum Tag tag)
{
    switch (tag) {
    case SCRIPT: return "script";
    case STYLE: return "style";
    case TITLE: return "title";
    case TEXTAREA: return "textarea";
    case XMP: return "xmp";
    case IFRAME: return "iframe";
    case NOEMBED: return "noembed";
    case NOFRAMES: return "noframes";
    default: return NULL;
    }
}

/* The content of an element whose content is text; gives where its end tag begins. */
static Text raw(Scan *s, Text at, enum Tag tag, const char *name)
{
    Text stop = tag == SCRIPT ? end_of_script(at, s->end) : end_of_raw(at, s->end, name, strlen(name));
    if (is_foreign(s) && find(at, stop, '<') < stop) s->odd = 1;
    if (tag == TITLE) {
        if (is_foreign(s)) s->drawn_title = 1;
        else if (!s->title) {
            s->title = decoded(at, stop, 0);
            if (!s->title) s->failed = 1;
        }
        data(s, at, stop, 1, 0);
    } else if (tag == TEXTAREA) data(s, at, stop, 1, 0);
    else if (tag == XMP) data(s, at, stop, 0, 0);
    return stop;
}

/* -- markup -------------------------------------------------------------------------------------------------------- */

static enum Tag tag_of(Text name, Py_ssize_t size)
{
    if (size > LONGEST_NAME) return OTHER;
    unsigned char first = lower(*name);
    for (size_t i = FIRST_NAMES[first - 'a']; i < sizeof NAMES / sizeof *NAMES && NAMES[i].name[0] == first; i++)
        if (NAMES[i].size == size && equals(name, size, NAMES[i].name)) return NAMES[i].tag;
    return OTHER;
}

static Text end_tag(Scan *s, Text at)
{
    Text stop = at;
    while (stop < s->end && !ends_name(*stop)) stop++;
    enum Tag tag = tag_of(at, stop - at);
    int closes;
    stop = pass_tag(stop, s->end, &closes);
    if (!stop) return s->end;
    if (tag == TEMPLATE) s->templates -= s->templates > 0;
    else if (tag == SVG) s->drawings -= s->drawings > 0;
    else if (tag == MATH) s->formulas -= s->formulas > 0;
    else if (tag == SELECT) s->in_select = 0;
    return stop;
}

/* Whether the tree could have another view of the page than its tags, from this one on. */
static int is_odd(const Scan *s, enum Tag tag)
{
    if (tag == PLAINTEXT || tag == FRAMESET || tag == FRAME || tag == NOFRAMES || tag == TEMPLATE) return 1;
    return s->in_select && tag != OTHER && tag != SCRIPT && tag != HEADING && tag != SELECT && tag != INPUT
           && tag != KEYGEN && tag != TEXTAREA;
}

static Text start_tag(Scan *s, Text at)
{
    Text stop = at;
    while (stop < s->end && !ends_name(*stop)) stop++;
    enum Tag tag = tag_of(at, stop - at);
    int status = 0, closes = 0;
    if (s->in_head && tag < HEADING) s->in_head = 0;
    if (tag == ANCHOR || tag == AREA) status = anchor(s, &stop);
    else if (tag == BASE || tag == LINK || tag == META || tag == IFRAME) status = declaration(s, &stop, tag);
    else if (tag == HTML) status = root(s, &stop);
    else {
        stop = pass_tag(stop, s->end, &closes);
        status = stop ? 0 : 1;
    }
    if (status < 0) s->failed = 1;
    if (status) return s->end;
    if (tag == OTHER) return stop;
    if (is_odd(s, tag)) s->odd = 1;
    const char *name = raw_name(tag);
    if (name) {
        if (tag == TEXTAREA) s->in_select = 0;
        return raw(s, stop, tag, name);
    }
    switch (tag) {
    case TEMPLATE: s->templates++; break;
    case SVG: s->drawings += !closes; break;
    case MATH: s->formulas += !closes; break;
    case SELECT: s->in_select = !s->in_select; break;
    case INPUT: case KEYGEN: s->in_select = 0; break;
    case PLAINTEXT: data(s, stop, s->end, 0, 0); return s->end;
    default: break;
    }
    return stop;
}

static Text comment(Text at, Text end)
{
    if (at < end && *at == '>') return at + 1;
    if (end - at > 1 && at[0] == '-' && at[1] == '>') return at + 2;
    while ((at = find(at, end, '-')) < end) {
        if (end - at > 2 && at[1] == '-' && at[2] == '>') return at + 3;
        if (end - at > 3 && at[1] == '-' && at[2] == '!' && at[3] == '>') return at + 4;
        at++;
    }
    return end;
}

/* What begins with the `<` at `at`: where it ends, or NULL where it is text. */
static Text markup(Scan *s, Text at)
{
    Text next = at + 1;
    if (next == s->end) return NULL;
    if (is_letter(*next)) return start_tag(s, next);
    if (*next == '/') {
        if (++next == s->end) return NULL;
        if (is_letter(*next)) return end_tag(s, next);
    } else if (*next == '!') {
        if (s->end - next > 2 && next[1] == '-' && next[2] == '-') return comment(next + 3, s->end);
        if (is_foreign(s) && s->end - next > 7 && !memcmp(next, "![CDATA[", 8)) s->odd = 1;
    } else if (*next != '?') return NULL;
    Text stop = find(next, s->end, '>');
    return stop < s->end ? stop + 1 : stop;
}

static void run(Scan *s, Text at)
{
    Text from = at; /* of text not taken yet */
    while (!s->failed && (at = find(at, s->end, '<')) < s->end) {
        /* Before the markup is read, since a tag may change what text is to it. */
        Text begin = at;
        int letter = begin + 1 < s->end && (is_letter(begin[1]) || begin[1] == '/' || begin[1] == '!' || begin[1] == '?');
        if (!letter || (begin[1] == '/' && begin + 2 == s->end)) { at++; continue; }
        if (begin > from) data(s, from, begin, 1, 1);
        if (s->wants_text) part(s);
        at = markup(s, begin);
        from = at;
    }
    if (!s->failed && from < s->end) data(s, from, s->end, 1, 1);
    if (s->drawn_title && !s->title) s->odd = 1;
}

static PyObject *result(Scan *s)
{
    PyObject *text = Py_None;
    if (s->wants_text) {
        if (s->put != s->out && s->put[-1] == ' ') s->put--;
        text = PyBytes_FromStringAndSize((const char *)s->out, s->put - s->out);
        if (!text) return NULL;
    } else Py_INCREF(text);
    return Py_BuildValue("(ONOONN)", s->events, PyBool_FromLong(s->cut), s->title ? s->title : Py_None, s->language ? s->language : Py_None,
                         text, PyBool_FromLong(s->odd));
}

static PyObject *scan(PyObject *module, PyObject *args)
{
    Py_ssize_t size, max_links;
    const char *body;
    int wants_text;
    if (!PyArg_ParseTuple(args, "y#np", &body, &size, &max_links, &wants_text)) return NULL;
    Scan s = {.end = (Text)body + size, .wants_text = wants_text, .in_head = 1, .max_links = max_links};
    s.room = wants_text ? size / 2 + 256 : 0;
    s.out = s.put = PyMem_Malloc(s.room + 1);
    s.events = PyList_New(0);
    s.places = PyDict_New();
    PyObject *made = NULL;
    if (!s.out) PyErr_NoMemory();
    else if (s.events && s.places) {
        run(&s, (Text)body);
        if (!s.failed) made = result(&s);
    }
    PyMem_Free(s.out);
    Py_XDECREF(s.events);
    Py_XDECREF(s.places);
    Py_XDECREF(s.title);
    Py_XDECREF(s.language);
    return made;
}

static PyMethodDef METHODS[] = {
    {"scan", scan, METH_VARARGS, "scan(body, max_links, wants_text, /): see crawlspace.pages.scanning.scan"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_scan", NULL, -1, METHODS, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__scan(void)
{
    if (!entities) {
        PyObject *html = PyImport_ImportModule("html.entities");
        if (!html) return NULL;
        entities = PyObject_GetAttrString(html, "html5");
        Py_DECREF(html);
        if (!entities) return NULL;
    }
    size_t at = 0;
    for (int letter = 0; letter < 26; letter++) {
        FIRST_NAMES[letter] = at;
        while (at < sizeof NAMES / sizeof *NAMES && NAMES[at].name[0] == 'a' + letter) at++;
    }
    return PyModule_Create(&MODULE);
}
