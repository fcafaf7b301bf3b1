/*
 * The binary interface of DLPack 1.3, declared by this project from the specification (https://dmlc.github.io/dlpack/latest/c_api.html).
 *
 * Every constant below is also generated into Go and Python (`make gen`); the layout and the values are compared with a real dlpack.h by the tests.
 * The names differ from the specification's so that both headers can stand in one translation unit.
 */
#ifndef DLF_DLPACK_ABI_H
#define DLF_DLPACK_ABI_H

#include <stdint.h>

/* The version whose rules are kept, and that our structs carry. */
#define DLF_VERSION_MAJOR 1
#define DLF_VERSION_MINOR 3

/* Names of capsules and attributes of the Python side. */
#define DLF_CAPSULE_LEGACY "dltensor"
#define DLF_CAPSULE_LEGACY_USED "used_dltensor"
#define DLF_CAPSULE_VERSIONED "dltensor_versioned"
#define DLF_CAPSULE_VERSIONED_USED "used_dltensor_versioned"
#define DLF_CAPSULE_EXCHANGE "dlpack_exchange_api"
#define DLF_ATTR_EXCHANGE "__dlpack_c_exchange_api__"
#define DLF_ATTR_EXCHANGE_OLD "__c_dlpack_exchange_api__"

/* Device types. The comment is the name that dlferry prints. */
enum {
    DLF_DEVICE_CPU = 1,            /* cpu */
    DLF_DEVICE_CUDA = 2,           /* cuda */
    DLF_DEVICE_CUDA_HOST = 3,      /* cuda_host */
    DLF_DEVICE_OPENCL = 4,         /* opencl */
    DLF_DEVICE_VULKAN = 7,         /* vulkan */
    DLF_DEVICE_METAL = 8,          /* metal */
    DLF_DEVICE_VPI = 9,            /* vpi */
    DLF_DEVICE_ROCM = 10,          /* rocm */
    DLF_DEVICE_ROCM_HOST = 11,     /* rocm_host */
    DLF_DEVICE_EXT_DEV = 12,       /* ext_dev */
    DLF_DEVICE_CUDA_MANAGED = 13,  /* cuda_managed */
    DLF_DEVICE_ONEAPI = 14,        /* oneapi */
    DLF_DEVICE_WEBGPU = 15,        /* webgpu */
    DLF_DEVICE_HEXAGON = 16,       /* hexagon */
    DLF_DEVICE_MAIA = 17,          /* maia */
    DLF_DEVICE_TRN = 18,           /* trn */
    DLF_DEVICE_TPU = 19,           /* tpu (unreleased) */
    DLF_DEVICE_TPU_HOST = 20,      /* tpu_host (unreleased) */
    DLF_DEVICE_ASCEND = 21         /* ascend (unreleased) */
};

/* Type codes. */
enum {
    DLF_CODE_INT = 0,              /* int */
    DLF_CODE_UINT = 1,             /* uint */
    DLF_CODE_FLOAT = 2,            /* float */
    DLF_CODE_OPAQUE_HANDLE = 3,    /* opaque_handle */
    DLF_CODE_BFLOAT = 4,           /* bfloat */
    DLF_CODE_COMPLEX = 5,          /* complex */
    DLF_CODE_BOOL = 6,             /* bool */
    DLF_CODE_FLOAT8_E3M4 = 7,      /* float8_e3m4 */
    DLF_CODE_FLOAT8_E4M3 = 8,      /* float8_e4m3 */
    DLF_CODE_FLOAT8_E4M3B11FNUZ = 9, /* float8_e4m3b11fnuz */
    DLF_CODE_FLOAT8_E4M3FN = 10,   /* float8_e4m3fn */
    DLF_CODE_FLOAT8_E4M3FNUZ = 11, /* float8_e4m3fnuz */
    DLF_CODE_FLOAT8_E5M2 = 12,     /* float8_e5m2 */
    DLF_CODE_FLOAT8_E5M2FNUZ = 13, /* float8_e5m2fnuz */
    DLF_CODE_FLOAT8_E8M0FNU = 14,  /* float8_e8m0fnu */
    DLF_CODE_FLOAT6_E2M3FN = 15,   /* float6_e2m3fn */
    DLF_CODE_FLOAT6_E3M2FN = 16,   /* float6_e3m2fn */
    DLF_CODE_FLOAT4_E2M1FN = 17,   /* float4_e2m1fn */
    DLF_CODE_BCOMPLEX = 18         /* bcomplex (unreleased) */
};

/* Bits of DlfManagedTensorVersioned.flags. */
#define DLF_FLAG_READ_ONLY (1ull << 0)
#define DLF_FLAG_IS_COPIED (1ull << 1)
#define DLF_FLAG_SUBBYTE_PADDED (1ull << 2)

typedef struct {
    uint32_t major;
    uint32_t minor;
} DlfVersion;

typedef struct {
    int32_t type;
    int32_t id;
} DlfDevice;

typedef struct {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
} DlfDataType;

/* Strides count elements; NULL strides mean compact row-major order. */
typedef struct {
    void *data;
    DlfDevice device;
    int32_t ndim;
    DlfDataType dtype;
    int64_t *shape;
    int64_t *strides;
    uint64_t byte_offset;
} DlfTensor;

/* What a capsule named "dltensor" points to. The deleter frees the struct too, and may be NULL. */
typedef struct DlfManagedTensor {
    DlfTensor tensor;
    void *manager_ctx;
    void (*deleter)(struct DlfManagedTensor *self);
} DlfManagedTensor;

/* What a capsule named "dltensor_versioned" points to. Of another major version only the deleter may be touched. */
typedef struct DlfManagedTensorVersioned {
    DlfVersion version;
    void *manager_ctx;
    void (*deleter)(struct DlfManagedTensorVersioned *self);
    uint64_t flags;
    DlfTensor tensor;
} DlfManagedTensorVersioned;

typedef struct DlfExchangeHeader {
    DlfVersion version;
    struct DlfExchangeHeader *prev_api;
} DlfExchangeHeader;

/* The C exchange API: one static table a Python type. Every function returns 0, or -1 after an error. */
typedef struct {
    DlfExchangeHeader header;
    int (*managed_tensor_allocator)(DlfTensor *prototype, DlfManagedTensorVersioned **out, void *error_ctx,
                                    void (*set_error)(void *error_ctx, const char *kind, const char *message));
    int (*managed_tensor_from_py_object_no_sync)(void *py_object, DlfManagedTensorVersioned **out);
    int (*managed_tensor_to_py_object_no_sync)(DlfManagedTensorVersioned *tensor, void **out_py_object);
    int (*dltensor_from_py_object_no_sync)(void *py_object, DlfTensor *out);
    int (*current_work_stream)(int32_t device_type, int32_t device_id, void **out_stream);
} DlfExchangeApi;

#endif
