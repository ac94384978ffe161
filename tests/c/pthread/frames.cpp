// Lambdas that capture local variables by reference, run by threads on any node: built by `fspc++ --pthread --share-stacks`,
// run by tests/cluster/stacks.rs; `c++ -pthread` builds it too.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include <array>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#define CHECK(condition)                                                                                           \
    do {                                                                                                           \
        if (!(condition)) {                                                                                        \
            std::fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);                     \
            std::exit(1);                                                                                          \
        }                                                                                                          \
    } while (0)

// A result for each thread, in an array of the caller's frame.
static long sum_in_parts(const std::vector<int> &numbers, int parts)
{
    std::array<long, 8> sums{};
    std::vector<std::thread> threads;
    for (int part = 0; part < parts; part++)
        threads.emplace_back([&, part] {
            for (std::size_t i = part; i < numbers.size(); i += parts) sums[part] += numbers[i];
        });
    for (auto &thread : threads) thread.join();
    return std::accumulate(sums.begin(), sums.end(), 0L);
}

// A mutex, a condition and what they protect, all in one frame.
static std::string take_turns()
{
    std::mutex lock;
    std::condition_variable change;
    std::string said;
    int turn = 0;
    auto speak = [&](int me, char letter) {
        for (int round = 0; round < 5; round++) {
            std::unique_lock<std::mutex> guard(lock);
            change.wait(guard, [&] { return turn == me; });
            said += letter;
            turn = (turn + 1) % 3;
            change.notify_all();
        }
    };
    std::thread first(speak, 0, 'a'), second(speak, 1, 'b'), third(speak, 2, 'c');
    first.join(), second.join(), third.join();
    return said;
}

// Threads of threads, each with a reference into the frame of the one that made it.
static void tree(int depth, long &leaves)
{
    if (depth == 0) {
        leaves = 1;
        return;
    }
    long left = 0, right = 0;
    std::thread thread(tree, depth - 1, std::ref(left));
    tree(depth - 1, right);
    thread.join();
    leaves = left + right;
}

struct Guard {
    int &count;
    explicit Guard(int &count) : count(count) { count++; }
    ~Guard() { count += 10; }
};

static void throw_deep(int depth, int &count)
{
    Guard guard(count);
    std::mutex lock; // a call of the library in each frame
    std::lock_guard<std::mutex> held(lock);
    if (depth == 0) throw std::runtime_error("deep");
    throw_deep(depth - 1, count);
}

static void exceptions()
{
    int count = 0;
    bool caught = false;
    std::thread thread([&] {
        try {
            throw_deep(5, count);
        } catch (const std::runtime_error &error) {
            caught = std::string(error.what()) == "deep";
        }
    });
    thread.join();
    CHECK(caught && count == 66);
}

int main()
{
    std::vector<int> numbers(5000);
    std::iota(numbers.begin(), numbers.end(), 1);
    CHECK(sum_in_parts(numbers, 5) == 5000L * 5001 / 2);
    CHECK(take_turns() == "abcabcabcabcabc");
    long leaves = 0;
    tree(3, leaves);
    CHECK(leaves == 8);
    exceptions();
    std::thread outer([&] {
        CHECK(sum_in_parts(numbers, 3) == 5000L * 5001 / 2);
        CHECK(take_turns().size() == 15);
        exceptions();
    });
    outer.join();
    std::printf("frames: all right\n");
}
