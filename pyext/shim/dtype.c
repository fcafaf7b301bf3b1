/* Element types: sizes, names, and values to and from Python objects. */
#include "core.h"

#include <math.h>
#include <string.h>

static const struct {
    uint8_t code, bits;
    uint16_t lanes;
    uint8_t kind, align;
    char format[4];
} known[] = {
    {DLF_CODE_BOOL, 8, 1, DLF_BOOL, 1, "?"},        {DLF_CODE_INT, 8, 1, DLF_INT, 1, "b"},          {DLF_CODE_INT, 16, 1, DLF_INT, 2, "h"},
    {DLF_CODE_INT, 32, 1, DLF_INT, 4, "i"},         {DLF_CODE_INT, 64, 1, DLF_INT, 8, "l"},         {DLF_CODE_UINT, 8, 1, DLF_UINT, 1, "B"},
    {DLF_CODE_UINT, 16, 1, DLF_UINT, 2, "H"},       {DLF_CODE_UINT, 32, 1, DLF_UINT, 4, "I"},       {DLF_CODE_UINT, 64, 1, DLF_UINT, 8, "L"},
    {DLF_CODE_FLOAT, 16, 1, DLF_HALF, 2, "e"},      {DLF_CODE_FLOAT, 32, 1, DLF_FLOAT, 4, "f"},     {DLF_CODE_FLOAT, 64, 1, DLF_FLOAT, 8, "d"},
    {DLF_CODE_BFLOAT, 16, 1, DLF_BFLOAT, 2, ""},    {DLF_CODE_COMPLEX, 32, 1, DLF_COMPLEX, 2, ""},  {DLF_CODE_COMPLEX, 64, 1, DLF_COMPLEX, 4, "Zf"},
    {DLF_CODE_COMPLEX, 128, 1, DLF_COMPLEX, 8, "Zd"}, {DLF_CODE_FLOAT4_E2M1FN, 4, 2, DLF_FLOAT4X2, 1, ""},
};

_Static_assert(sizeof(long) == 8, "the buffer formats l and L are 64-bit integers here");

/* The same by code and bytes, for dtypes of one lane; size 0: not among them. */
#define INDEXED_CODES (DLF_CODE_BOOL + 1)
static DlfElement indexed[INDEXED_CODES][17];

__attribute__((constructor)) static void index_known(void)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].lanes == 1)
            indexed[known[i].code][known[i].bits / 8] = (DlfElement){known[i].kind, known[i].align, known[i].bits / 8};
}

static int is_float8(uint8_t code) { return code >= DLF_CODE_FLOAT8_E3M4 && code <= DLF_CODE_FLOAT8_E8M0FNU; }

int dlf_element(DlfDataType dt, uint64_t flags, DlfElement *out)
{
    if (dt.lanes == 1 && dt.code < INDEXED_CODES && dt.bits % 8 == 0 && dt.bits <= 128) {
        *out = indexed[dt.code][dt.bits / 8];
        if (out->size)
            return 0;
    }
    const int padded = dt.bits < 8 && (flags & DLF_FLAG_SUBBYTE_PADDED);
    for (size_t i = 0; i < sizeof known / sizeof *known && !padded; i++) {
        if (known[i].code == dt.code && known[i].bits == dt.bits && known[i].lanes == dt.lanes) {
            *out = (DlfElement){known[i].kind, known[i].align, dt.bits * dt.lanes / 8};
            return 0;
        }
    }
    if (is_float8(dt.code) && dt.bits == 8 && dt.lanes == 1) {
        *out = (DlfElement){DLF_MINIFLOAT, 1, 1};
        return 0;
    }
    const int64_t bits = (int64_t)dt.bits * dt.lanes;
    if (bits == 0)
        return -1;
    if (padded) {
        *out = (DlfElement){DLF_OPAQUE, 1, dt.lanes};
        return 0;
    }
    if (bits % 8)
        return -1;
    *out = (DlfElement){DLF_OPAQUE, 1, bits / 8};
    return 0;
}

const char *dlf_buffer_format(DlfDataType dt)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == dt.code && known[i].bits == dt.bits && known[i].lanes == dt.lanes && known[i].format[0])
            return known[i].format;
    return NULL;
}

int dlf_from_buffer_format(const char *format, Py_ssize_t itemsize, DlfDataType *out)
{
    const char *f = format ? format : "B";
    int swapped = 0;
    if (*f && strchr("@=<>!", *f))
        swapped = *f == '>' || *f == '!', f++;
    uint8_t code;
    if (f[0] == 'Z' && f[1] && strchr("fde", f[1]) && !f[2])
        code = DLF_CODE_COMPLEX;
    else if (!f[0] || f[1])
        goto refuse;
    else if (*f == '?')
        code = DLF_CODE_BOOL;
    else if (strchr("bhilqn", *f))
        code = DLF_CODE_INT;
    else if (strchr("cBHILQN", *f))
        code = DLF_CODE_UINT;
    else if (strchr("efd", *f))
        code = DLF_CODE_FLOAT;
    else
        goto refuse;
    DlfElement e;
    if (itemsize < 1 || itemsize > 16)
        goto refuse;
    *out = (DlfDataType){code, (uint8_t)(itemsize * 8), 1};
    if (dlf_element(*out, 0, &e) || e.kind == DLF_OPAQUE)
        goto refuse;
    if (swapped && itemsize > 1) {
        PyErr_Format(PyExc_BufferError, "from_buffer: byte order of format '%s', got big-endian elements, want the machine's order; swap them first (array.byteswap(), ndarray.astype('=...'))", format);
        return -1;
    }
    return 0;
refuse:
    PyErr_Format(PyExc_BufferError, "from_buffer: format, got '%s' with %zd bytes an element, want one of bool, int, float or complex; memoryview(obj).cast('B') gives its bytes", f, itemsize);
    return -1;
}

const char *dlf_dtype_name(DlfDataType dt, char out[48])
{
    static const char *const names[] = {"int", "uint", "float", "opaque_handle", "bfloat", "complex", "bool"};
    static const char *const small[] = {"float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"};
    static const uint8_t natural[] = {8, 6, 4};
    const char *name = dt.code <= DLF_CODE_BOOL ? names[dt.code] : dt.code <= DLF_CODE_FLOAT4_E2M1FN ? small[dt.code - DLF_CODE_FLOAT8_E3M4] : NULL;
    const int is_small = dt.code > DLF_CODE_BOOL;
    const int usual = is_small ? natural[(dt.code >= DLF_CODE_FLOAT6_E2M3FN) + (dt.code >= DLF_CODE_FLOAT4_E2M1FN)] : 8;
    if (!name || dt.lanes != 1 || ((is_small || dt.code == DLF_CODE_BOOL) && dt.bits != usual))
        snprintf(out, 48, "%s%s(code %d, bits %d, lanes %d)", name ? name : "", name ? " " : "", dt.code, dt.bits, dt.lanes);
    else if (is_small || dt.code == DLF_CODE_BOOL)
        snprintf(out, 48, "%s", name);
    else
        snprintf(out, 48, "%s%d", name, dt.bits);
    return out;
}

static float half_to_float(uint16_t h)
{
    const int exponent = (h >> 10) & 31;
    const int mantissa = h & 1023;
    float v;
    if (exponent == 31)
        v = mantissa ? NAN : INFINITY;
    else
        v = exponent ? ldexpf((float)(mantissa + 1024), exponent - 25) : ldexpf((float)mantissa, -24);
    return h >> 15 ? -v : v;
}

/* Rounds to nearest, ties to even. */
static uint16_t half_from_double(double d)
{
    const uint16_t sign = signbit(d) ? 0x8000 : 0;
    const double a = fabs(d);
    if (isnan(d))
        return sign | 0x7e00;
    if (a == 0)
        return sign;
    if (a >= 65520.0)
        return sign | 0x7c00;
    int e;
    frexp(a, &e);
    const int shift = e - 1 < -14 ? 24 : 11 - e;
    const uint16_t m = (uint16_t)nearbyint(ldexp(a, shift));
    /* A carry out of the mantissa lands in the exponent, which is what rounding up means. */
    return e - 1 < -14 ? sign | m : (uint16_t)(sign + ((e + 13) << 10) + m);
}

static uint16_t bfloat_from_double(double d)
{
    float f = (float)d;
    uint32_t u;
    memcpy(&u, &f, 4);
    if (isnan(d))
        return (uint16_t)((u >> 16) | 0x40);
    /* float rounding came first: undo a double rounding by looking at what it did to a tie */
    if ((u & 0xffff) == 0x8000 && (double)f != d && isfinite(f))
        u = fabs((double)f) < fabs(d) ? u + 1 : u - 1;
    return (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

static const struct {
    uint8_t mantissa;
    uint8_t bias;
    uint8_t style; /* 0: as IEEE; 1: fn, all ones is NaN; 2: fnuz, only 0x80 is NaN; 3: exponent alone */
} minifloats[] = {{4, 3, 0}, {3, 7, 0}, {3, 11, 2}, {3, 7, 1}, {3, 8, 2}, {2, 15, 0}, {2, 16, 2}, {0, 127, 3}};

float dlf_minifloat(uint8_t code, uint8_t bits)
{
    const int mb = minifloats[code - DLF_CODE_FLOAT8_E3M4].mantissa;
    const int bias = minifloats[code - DLF_CODE_FLOAT8_E3M4].bias;
    const int style = minifloats[code - DLF_CODE_FLOAT8_E3M4].style;
    if (style == 3)
        return bits == 0xff ? NAN : ldexpf(1, bits - bias);
    const int exponent = (bits & 0x7f) >> mb;
    const int mantissa = bits & ((1 << mb) - 1);
    if (style == 0 && exponent == 0x7f >> mb)
        return mantissa ? NAN : bits >> 7 ? -INFINITY : INFINITY;
    if ((style == 1 && (bits & 0x7f) == 0x7f) || (style == 2 && bits == 0x80))
        return NAN;
    const float v = exponent ? ldexpf((float)(mantissa + (1 << mb)), exponent - bias - mb) : ldexpf((float)mantissa, 1 - bias - mb);
    return bits >> 7 ? -v : v;
}

static double float4(unsigned bits)
{
    static const double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    return bits & 8 ? -values[bits & 7] : values[bits & 7];
}

static double load_real(const void *p, int bits)
{
    uint16_t h;
    float f;
    double d;
    switch (bits) {
    case 16:
        memcpy(&h, p, 2);
        return half_to_float(h);
    case 32:
        memcpy(&f, p, 4);
        return f;
    default:
        memcpy(&d, p, 8);
        return d;
    }
}

PyObject *dlf_load(const DlfElement *e, DlfDataType dt, const void *p)
{
    uint64_t u = 0;
    uint32_t w;
    float f;
    const int half = dt.bits / 2;
    switch (e->kind) {
    case DLF_BOOL:
        return PyBool_FromLong(*(const uint8_t *)p != 0);
    case DLF_INT:
        memcpy(&u, p, (size_t)e->size); /* little-endian */
        return PyLong_FromLongLong((int64_t)(u << (64 - dt.bits)) >> (64 - dt.bits));
    case DLF_UINT:
        memcpy(&u, p, (size_t)e->size);
        return PyLong_FromUnsignedLongLong(u);
    case DLF_HALF:
    case DLF_FLOAT:
        return PyFloat_FromDouble(load_real(p, dt.bits));
    case DLF_BFLOAT:
        memcpy(&u, p, 2);
        w = (uint32_t)u << 16;
        memcpy(&f, &w, 4);
        return PyFloat_FromDouble(f);
    case DLF_COMPLEX:
        return PyComplex_FromDoubles(load_real(p, half), load_real((const char *)p + half / 8, half));
    case DLF_MINIFLOAT:
        return PyFloat_FromDouble(dlf_minifloat(dt.code, *(const uint8_t *)p));
    case DLF_FLOAT4X2: {
        PyObject *low = PyFloat_FromDouble(float4(*(const uint8_t *)p & 15));
        PyObject *high = PyFloat_FromDouble(float4(*(const uint8_t *)p >> 4));
        PyObject *pair = low && high ? PyTuple_Pack(2, low, high) : NULL;
        Py_XDECREF(low);
        Py_XDECREF(high);
        return pair;
    }
    default: {
        char name[48];
        return dlf_raise(DLF_KIND_DTYPE, "tolist: dtype, got the opaque %s, want one with values; it can be carried and exported only", dlf_dtype_name(dt, name));
    }
    }
}

static int out_of_range(const char *function, PyObject *value, DlfDataType dt)
{
    char name[48];
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError, "%s: value, got %R, want one that fits %s", function, value, dlf_dtype_name(dt, name));
    return -1;
}

static int store_int(DlfDataType dt, void *p, PyObject *value, const char *function)
{
    PyObject *i = PyNumber_Index(value);
    if (!i) {
        if (!PyErr_ExceptionMatches(PyExc_TypeError))
            return -1;
        PyErr_Clear();
        char name[48];
        PyErr_Format(PyExc_TypeError, "%s: value, got %R, want an int for %s", function, value, dlf_dtype_name(dt, name));
        return -1;
    }
    int bad = 0;
    uint64_t u;
    if (dt.code == DLF_CODE_INT) {
        const int64_t v = PyLong_AsLongLong(i);
        const int64_t limit = (int64_t)((UINT64_C(1) << (dt.bits - 1)) - 1);
        bad = (v == -1 && PyErr_Occurred()) || v > limit || v < -limit - 1;
        u = (uint64_t)v;
    } else {
        u = PyLong_AsUnsignedLongLong(i);
        bad = (u == UINT64_MAX && PyErr_Occurred()) || (dt.bits < 64 && u >> dt.bits);
    }
    Py_DECREF(i);
    if (bad)
        return out_of_range(function, value, dt);
    memcpy(p, &u, dt.bits / 8);
    return 0;
}

static void store_real(void *p, int bits, double d)
{
    const uint16_t h = bits == 16 ? half_from_double(d) : 0;
    const float f = (float)d;
    memcpy(p, bits == 16 ? (const void *)&h : bits == 32 ? (const void *)&f : (const void *)&d, (size_t)bits / 8);
}

/* NumPy's complex scalars turn into floats with no more than a warning. */
static int has_imaginary(PyObject *value)
{
    PyObject *imaginary = dlf_py_has(value, PyType_FLAG_LONG) ? NULL : PyObject_GetAttrString(value, "imag");
    const int yes = imaginary ? PyObject_IsTrue(imaginary) : 0;
    Py_XDECREF(imaginary);
    if (PyErr_Occurred() && !dlf_error_is_soft())
        return -1;
    PyErr_Clear();
    return yes > 0;
}

int dlf_store(const DlfElement *e, DlfDataType dt, void *p, PyObject *value, const char *function)
{
    double re, im = 0;
    int imaginary;
    char name[48];
    switch (e->kind) {
    case DLF_BOOL: {
        if (dlf_py_has(value, PyType_FLAG_UNICODE)) {
            PyErr_Format(PyExc_TypeError, "%s: value, got %R, want a bool or a number", function, value);
            return -1;
        }
        const int truth = PyObject_IsTrue(value);
        if (truth < 0)
            return -1;
        *(uint8_t *)p = (uint8_t)truth;
        return 0;
    }
    case DLF_INT:
    case DLF_UINT:
        return store_int(dt, p, value, function);
    case DLF_HALF:
    case DLF_FLOAT:
    case DLF_BFLOAT:
    case DLF_COMPLEX:
        break;
    default:
        dlf_raise(DLF_KIND_DTYPE, "%s: dtype, got %s, want one whose values can be set from Python", function, dlf_dtype_name(dt, name));
        return -1;
    }
    if (e->kind == DLF_COMPLEX) {
        /* complex() asks NumPy's scalars for both parts, and would read a str, which is no number. */
        PyObject *c = dlf_py_has(value, PyType_FLAG_UNICODE) ? NULL : PyObject_CallFunctionObjArgs((PyObject *)&PyComplex_Type, value, NULL);
        if (!c && !PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "str");
        re = c ? PyComplex_RealAsDouble(c) : -1;
        im = c ? PyComplex_ImagAsDouble(c) : 0;
        Py_XDECREF(c);
    } else if ((imaginary = has_imaginary(value))) {
        if (imaginary < 0)
            return -1;
        re = -1;
        PyErr_SetString(PyExc_TypeError, "complex");
    } else {
        re = PyFloat_AsDouble(value);
    }
    if ((re == -1 || im == -1) && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_OverflowError))
            return out_of_range(function, value, dt);
        if (PyErr_ExceptionMatches(PyExc_TypeError)) {
            PyErr_Clear();
            PyErr_Format(PyExc_TypeError, "%s: value, got %R, want a number for %s", function, value, dlf_dtype_name(dt, name));
        }
        return -1;
    }
    if (e->kind == DLF_COMPLEX) {
        store_real(p, dt.bits / 2, re);
        store_real((char *)p + dt.bits / 16, dt.bits / 2, im);
    } else if (e->kind == DLF_BFLOAT) {
        const uint16_t b = bfloat_from_double(re);
        memcpy(p, &b, 2);
    } else {
        store_real(p, dt.bits, re);
    }
    return 0;
}
