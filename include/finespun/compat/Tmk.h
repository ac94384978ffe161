/* The name under which TreadMarks programs know <finespun/tmk.h>.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <finespun/tmk.h>
