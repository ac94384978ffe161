// A std::mutex in a global variable: with --share-globals alone it is the C library's, with --pthread one of all nodes.
#include <finespun/finespun.h>

#include <cstdio>
#include <mutex>

static std::mutex guard;
static int turns;

static void turn(void *)
{
    std::lock_guard<std::mutex> one(guard);
    turns++;
}

int main()
{
    fsp_parallel(turn, nullptr);
    std::printf("std_mutex: %d turns\n", turns);
}
