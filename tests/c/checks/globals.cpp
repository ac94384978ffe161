// A variable of a class, written in one process and read in another; objects that each process makes for itself are no mistake.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include <finespun/finespun.h>

#include <map>
#include <string>
#include <vector>

namespace pool {
struct Settings {
    static double factor;
    int calls = 0;
    std::vector<int> seen;
};
double Settings::factor = 1.0;

// Made in each process by the first call.
Settings &settings()
{
    static Settings own;
    return own;
}
static std::map<std::string, int> names;
} // namespace pool

static void work(void *argument)
{
    auto &own = pool::settings();
    own.seen.push_back(own.calls++);
    pool::names["work"] += 1;
    auto *shared = static_cast<double *>(argument);
    shared[fsp_processor()] = pool::Settings::factor * static_cast<double>(own.seen.size() + pool::names.size());
}

int main(int argc, char **argv)
{
    if (fsp_init(&argc, &argv) != FSP_OK)
        return 1;
    pool::Settings::factor = 2.0;
    auto *shared = static_cast<double *>(fsp_malloc(1024 * sizeof(double)));
    fsp_parallel(work, shared);
    double last = shared[fsp_processors() - 1];
    fsp_finalize();
    return last == 2.0 ? 0 : 1; // what the mistake gives: a factor of 1
}
