/* Kinds of refusal, shared by C, Go and Python. The comment is the name that is printed; pyext/shim/errors.c maps each kind to a Python class. */
#ifndef DLF_KINDS_H
#define DLF_KINDS_H

enum {
    DLF_KIND_OK = 0,           /* ok */
    DLF_KIND_NULL = 1,         /* null pointer */
    DLF_KIND_SHAPE = 2,        /* shape */
    DLF_KIND_STRIDES = 3,      /* strides */
    DLF_KIND_OFFSET = 4,       /* byte offset */
    DLF_KIND_DTYPE = 5,        /* dtype */
    DLF_KIND_DEVICE = 6,       /* device */
    DLF_KIND_VERSION = 7,      /* version */
    DLF_KIND_READ_ONLY = 8,    /* read-only */
    DLF_KIND_CONSUMED = 9,     /* consumed */
    DLF_KIND_OVERFLOW = 10,    /* overflow */
    DLF_KIND_ALIGNMENT = 11,   /* alignment */
    DLF_KIND_LAYOUT = 12,      /* layout */
    DLF_KIND_COPY = 13,        /* copy */
    DLF_KIND_VALUE = 14,       /* value */
    DLF_KIND_TYPE = 15,        /* type */
    DLF_KIND_MEMORY = 16,      /* memory */
    DLF_KIND_CLOSED = 17,      /* closed */
    DLF_KIND_UNSUPPORTED = 18, /* unsupported */
    DLF_KIND_PANIC = 19        /* panic */
};

#endif
