/* The files of the extension that decide which tensors are taken, as they are. */
#include "../../exchange/block.c"
#include "../../pyext/shim/args.c"
#include "../../pyext/shim/check.c"
#include "../../pyext/shim/dtype.c"
#include "../../pyext/shim/errors.c"
#include "../../pyext/shim/objects.c"
