/* How std::future, std::promise and their kin sleep inside their library (fspc++ --pthread), by the names in the object format: on words that
 * several nodes share, by the library's futex.  The layouts are those of libstdc++'s stable binary interface.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "sharing.h"

#include <errno.h>
#include <finespun/program.h>
#include <limits.h>
#include <linux/futex.h>

/* std::__atomic_futex_unsigned_base::_M_futex_wait_until(unsigned *word, unsigned value, bool has_limit, seconds, nanoseconds), by the
 * clock of the day, and ..._steady: false if the moment has come. */
#define MOMENT "NSt6chrono8durationIlSt5ratioILl1ELl1EEEENS2_IlS3_ILl1ELl1000000000EEEE"
#define WAITS(name, mangled, clock)                                                                                    \
    bool name(void *of, unsigned *word, unsigned value, bool has_limit, long seconds, long nanoseconds)                \
        __asm__("__wrap_" mangled MOMENT);                                                                             \
    bool real_##name(void *of, unsigned *word, unsigned value, bool has_limit, long seconds, long nanoseconds)         \
        __asm__("__real_" mangled MOMENT);                                                                             \
    bool name(void *of, unsigned *word, unsigned value, bool has_limit, long seconds, long nanoseconds)                \
    {                                                                                                                  \
        const struct timespec moment = { seconds, nanoseconds };                                                       \
        long result = LONG_MIN;                                                                                        \
        if (may_be_shared(word))                                                                                       \
            result = fsp_program_futex(word, FUTEX_WAIT_BITSET | (clock), value, has_limit ? &moment : NULL, UINT_MAX); \
        return result == LONG_MIN ? real_##name(of, word, value, has_limit, seconds, nanoseconds) : result != -ETIMEDOUT; \
    }
WAITS(wait_until, "_ZNSt28__atomic_futex_unsigned_base19_M_futex_wait_untilEPjjb", FUTEX_CLOCK_REALTIME)
WAITS(wait_until_steady, "_ZNSt28__atomic_futex_unsigned_base26_M_futex_wait_until_steadyEPjjb", 0)

/* std::__atomic_futex_unsigned_base::_M_futex_notify_all(unsigned *), without an object. */
#define NOTIFY "_ZNSt28__atomic_futex_unsigned_base19_M_futex_notify_allEPj"
void notify_all(unsigned *word) __asm__("__wrap_" NOTIFY);
void real_notify_all(unsigned *word) __asm__("__real_" NOTIFY);
void notify_all(unsigned *word)
{
    if (!may_be_shared(word) || fsp_program_futex(word, FUTEX_WAKE, INT_MAX, NULL, 0) == LONG_MIN)
        real_notify_all(word);
}
