#include "bridge.h"

#include <errno.h>
#include <string.h>

#ifndef _WIN32
#include <fcntl.h>
#include <unistd.h>
#endif
#ifdef __linux__
#include <sys/eventfd.h>
#endif

static DlfStorage *storage(uintptr_t st) { return (DlfStorage *)st; }

uintptr_t dlfx_storage_new(size_t size, int zeroed, uintptr_t *data)
{
    void *p = NULL;
    DlfStorage *st = dlf_storage_new(size, zeroed, &p);
    *data = (uintptr_t)p;
    return (uintptr_t)st;
}

uintptr_t dlfx_storage_wrap(uint32_t kind, uintptr_t owner, uint64_t slot) { return (uintptr_t)dlf_storage_wrap(kind, (void *)owner, slot); }
void dlfx_storage_ref(uintptr_t st) { dlf_storage_ref(storage(st)); }
void dlfx_storage_unref(uintptr_t st) { dlf_storage_unref(storage(st)); }

uintptr_t dlfx_import(uint32_t kind, uintptr_t owner)
{
    DlfStorage *st = dlf_storage_wrap(kind, (void *)owner, 0);
    if (st || __atomic_load_n(&dlf_python_end, __ATOMIC_ACQUIRE))
        return (uintptr_t)st;
    if (kind == DLF_END_LEGACY)
        dlf_delete_legacy((DlfManagedTensor *)owner);
    else
        dlf_delete_versioned((DlfManagedTensorVersioned *)owner);
    return 0;
}

uintptr_t dlfx_export(uint32_t kind, uintptr_t st, uintptr_t data, DlfDevice device, DlfDataType dtype, int32_t ndim, int64_t *dims, uint64_t offset,
                      uint64_t flags)
{
    const DlfTensor t = {.data = (void *)data,
                         .device = device,
                         .ndim = ndim,
                         .dtype = dtype,
                         .shape = dims,
                         .strides = ndim ? dims + ndim : NULL,
                         .byte_offset = offset};
    if (kind == DLF_END_LEGACY)
        return (uintptr_t)dlf_export_legacy(&t, storage(st));
    return (uintptr_t)dlf_export_versioned(&t, storage(st), flags);
}

uintptr_t dlfx_go_take(void) { return (uintptr_t)dlf_go_take(); }

uintptr_t dlfx_go_pop(uintptr_t st, uint64_t *slot)
{
    DlfStorage *next = storage(st)->next;
    *slot = storage(st)->slot;
    dlf_storage_discard(storage(st));
    return (uintptr_t)next;
}

#ifdef _WIN32

int dlfx_wake_open(void) { return -1; }

#else

static int wake_fd = -1;

/* Runs inside deleters: never blocks, and leaves the caller's errno alone. A full descriptor is readable already. */
static void wake(void)
{
    const uint64_t one = 1;
    const int saved = errno;
    ssize_t n = write(wake_fd, &one, sizeof one);
    (void)n;
    errno = saved;
}

int dlfx_wake_open(void)
{
    int read_fd;
#ifdef __linux__
    read_fd = wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (read_fd < 0)
        return -1;
#else
    int fds[2];
    if (pipe(fds))
        return -1;
    for (int i = 0; i < 2; i++) {
        fcntl(fds[i], F_SETFD, FD_CLOEXEC);
        fcntl(fds[i], F_SETFL, O_NONBLOCK);
    }
    read_fd = fds[0];
    wake_fd = fds[1];
#endif
    __atomic_store_n(&dlf_go_wake, wake, __ATOMIC_RELEASE);
    return read_fd;
}

#endif
