/* How many threads run at once: one for each processor of the job, where a program asks for those of the machine.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <finespun/program.h>
#include <unistd.h>

int __real_get_nprocs(void);
int __wrap_get_nprocs(void);
int __wrap_get_nprocs(void)
{
    return fsp_program_runs() ? fsp_processors() : __real_get_nprocs();
}

int __real_get_nprocs_conf(void);
int __wrap_get_nprocs_conf(void);
int __wrap_get_nprocs_conf(void)
{
    return fsp_program_runs() ? fsp_processors() : __real_get_nprocs_conf();
}

long __real_sysconf(int name);
long __wrap_sysconf(int name);
long __wrap_sysconf(int name)
{
    if ((name == _SC_NPROCESSORS_ONLN || name == _SC_NPROCESSORS_CONF) && fsp_program_runs())
        return fsp_processors();
    return __real_sysconf(name);
}

/* std::thread::hardware_concurrency() */
unsigned __wrap__ZNSt6thread20hardware_concurrencyEv(void);
unsigned __wrap__ZNSt6thread20hardware_concurrencyEv(void)
{
    return (unsigned)__wrap_get_nprocs();
}
