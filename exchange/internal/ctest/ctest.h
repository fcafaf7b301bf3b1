#ifndef DLF_CTEST_H
#define DLF_CTEST_H

#include "../../block.h"

/* Producers. The structs are never freed, so that a second call of a deleter is seen and counted. */
uintptr_t ctest_versioned(const DlfTensor *t, uint64_t flags, uint32_t major, uint32_t minor);
uintptr_t ctest_legacy(const DlfTensor *t);
int64_t ctest_drops(void);
int64_t ctest_double_drops(void);
/* How often the deleter of one of them ran. */
int ctest_dropped(uintptr_t m);

/* Consumers. */
void ctest_storm(uintptr_t *m, int n, int threads);
double ctest_sum_float32(uintptr_t m);

/* A stand-in for Python's side: takes storages over, ends them when asked. */
uintptr_t ctest_python_end(void);
int ctest_python_drain(void);

/* Tables. */
uintptr_t ctest_table(int which);
/* What the refusing table was given last. */
uintptr_t ctest_refused(void);

#endif
