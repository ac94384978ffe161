// As program.c, with what C++ adds: namespaces, members of classes, inline variables, templates.
#include <cstdio>

namespace work {
static long done;
struct Pool {
    static int size;
    inline static int used = 3;
};
int Pool::size = 1;
template <typename T> T twice(T value) {
    static T last;
    last = value;
    std::printf("last %lx\n", (unsigned long)&last);
    return value + last;
}
} // namespace work

int main() {
    work::done++;
    std::printf("done %lx\nsize %lx\n", (unsigned long)&work::done, (unsigned long)&work::Pool::size);
    std::printf("used %lx\n", (unsigned long)&work::Pool::used);
    return work::twice(2) - 4;
}
