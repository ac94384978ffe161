/* What #include <stdatomic.h> finds in a program of fspcc --pthread whose compiler makes no calls of atomic operations.  SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifdef __cplusplus
#include_next <stdatomic.h>
#else
#include <finespun/stdatomic.h>
#endif
