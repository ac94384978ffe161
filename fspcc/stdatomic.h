/* What #include <stdatomic.h> finds in a program of fspcc --pthread.  SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifdef __cplusplus
#include_next <stdatomic.h>
#else
#include <finespun/stdatomic.h>
#endif
