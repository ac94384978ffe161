/* C++'s atomic classes between threads on any nodes. Built by c++ and by `fspc++ --pthread` from the same source.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <semaphore>
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

constexpr int THREADS = 4, TIMES = 40;

template <class Body>
static void on_all(Body body)
{
    std::vector<std::thread> threads;
    for (int i = 0; i < THREADS; i++) threads.emplace_back(body, i);
    for (auto &thread : threads) thread.join();
}

/* Counters, and what most programs begin with: wait for all by a loop. */
static std::atomic<int> started, relaxed;
static std::atomic<long> counter;
static std::atomic<bool> go;

static void count(int me)
{
    started.fetch_add(1, std::memory_order_relaxed);
    while (started.load(std::memory_order_relaxed) < THREADS) std::this_thread::yield();
    if (me == 2) go = true;
    while (!go) continue;
    for (int i = 0; i < TIMES; i++) {
        counter++;
        relaxed.fetch_add(2, std::memory_order_relaxed);
    }
}

/* A queue of work, each piece counted when it is done. */
static std::atomic<int> next_piece, pieces_done;
static int results[200];

static void work(int)
{
    for (int piece; (piece = next_piece.fetch_add(1)) < 200; pieces_done++) results[piece] = piece * piece;
    while (pieces_done < 200) std::this_thread::yield();
    long sum = 0;
    for (int result : results) sum += result;
    CHECK(sum == 2646700);
}

/* A stack without locks, of cells that all nodes have made. */
struct cell {
    long value;
    cell *next;
};
static std::atomic<cell *> top;
static std::atomic<long> popped, sum_popped;

static void push_and_pop(int me)
{
    for (int i = 0; i < TIMES; i++) {
        cell *mine = new cell{me * 1000L + i, top.load()};
        while (!top.compare_exchange_weak(mine->next, mine, std::memory_order_release, std::memory_order_relaxed)) continue;
    }
    /* Cells are not freed: no address comes twice. */
    while (popped < THREADS * TIMES) {
        cell *first = top.load(std::memory_order_acquire);
        while (first && !top.compare_exchange_weak(first, first->next, std::memory_order_acquire)) continue;
        if (first) sum_popped += first->value, popped++;
    }
}

/* A barrier of an atomic counter and a generation, over which data travels. */
static std::atomic<int> arrived, generation;
static int slots[THREADS];

static void spin_barrier(int me)
{
    for (int turn = 1; turn <= 10; turn++) {
        slots[me] = turn * (me + 1);
        int now = generation.load();
        if (arrived.fetch_add(1) + 1 == THREADS) {
            arrived.store(0, std::memory_order_relaxed);
            generation.store(now + 1, std::memory_order_release);
        } else {
            while (generation.load(std::memory_order_acquire) == now) continue;
        }
        CHECK(slots[(me + 1) % THREADS] >= turn * ((me + 1) % THREADS + 1));
    }
}

/* One writer and its readers, ordered by fences. */
static int message[2];
static std::atomic<int> published;

static void fences(int me)
{
    if (me == 3) {
        message[0] = 7, message[1] = 8;
        std::atomic_thread_fence(std::memory_order_release);
        published.store(1, std::memory_order_relaxed);
    }
    while (!published.load(std::memory_order_relaxed)) continue;
    std::atomic_thread_fence(std::memory_order_acquire);
    CHECK(message[0] == 7 && message[1] == 8);
}

/* Large values, and flags. */
struct triple {
    long a, b, c;
};
static std::atomic<triple> wide;
static std::atomic_flag flag = ATOMIC_FLAG_INIT;
static long under_the_flag;

static void wide_values(int)
{
    for (int i = 0; i < TIMES; i++) {
        triple was = wide.load();
        while (!wide.compare_exchange_weak(was, triple{was.a + 1, was.b + 2, was.c + 3})) continue;
        while (flag.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
        under_the_flag++;
        flag.clear(std::memory_order_release);
    }
}

/* Reference counts. */
static std::atomic<int> destroyed;
struct counted {
    std::array<int, 1000> numbers{};
    ~counted() { destroyed++; }
};
static std::shared_ptr<counted> everybodys;

static void copy_pointers(int me)
{
    for (int i = 0; i < TIMES; i++) {
        std::shared_ptr<counted> copy = everybodys;
        std::weak_ptr<counted> weak = copy;
        copy->numbers[me] = i + 1;
        CHECK(weak.lock() == copy);
    }
}

int main(int argc, char **argv)
{
    std::string only = argc > 1 ? argv[1] : "";
    auto wanted = [&](const char *name) { return only.empty() || only == name; };
    if (wanted("counters")) {
        on_all(count);
        CHECK(counter == THREADS * TIMES && relaxed == 2 * THREADS * TIMES);
    }
    if (wanted("queue")) on_all(work);
    if (wanted("stack")) {
        on_all(push_and_pop);
        CHECK(sum_popped == TIMES * 6000L + THREADS * (TIMES * (TIMES - 1) / 2));
    }
    if (wanted("spin")) on_all(spin_barrier);
    if (wanted("fences")) on_all(fences);
    if (wanted("wide")) {
        on_all(wide_values);
        triple last = wide;
        CHECK(last.a == THREADS * TIMES && last.c == 3 * THREADS * TIMES && under_the_flag == THREADS * TIMES);
    }
    if (wanted("shared_ptr")) {
        everybodys = std::make_shared<counted>();
        on_all(copy_pointers);
        CHECK(everybodys.use_count() == 1 && destroyed == 0 && everybodys->numbers[THREADS - 1] == TIMES);
        everybodys.reset();
        CHECK(destroyed == 1);
    }
    std::puts("atomic classes: all right");
}
