/* What of C++ is made of atomic operations and sleeps: between threads on any nodes. Built by c++ and by `fspc++ --pthread` from the same source.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <semaphore>
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

using namespace std::chrono_literals;
constexpr int THREADS = 4;

template <class Body>
static void on_all(Body body)
{
    std::vector<std::thread> threads;
    for (int i = 0; i < THREADS; i++) threads.emplace_back(body, i);
    for (auto &thread : threads) thread.join();
}

/* A token goes round; the value is of the size that futexes have, and of others. */
static std::atomic<int> token;
static std::atomic<long> long_token;
static std::atomic_flag raised;
static int passed;

static void pass_on(int me)
{
    for (int turn = me; turn < 3 * THREADS; turn += THREADS) {
        for (int now; (now = token.load()) != turn;) token.wait(now);
        passed++;
        token.store(turn + 1);
        token.notify_all();
    }
    for (long now; (now = long_token.load()) < me;) long_token.wait(now);
    long_token++;
    long_token.notify_all();
    if (me == 3) {
        raised.test_and_set();
        raised.notify_all();
    }
    raised.wait(false);
}

static std::latch *begun;
static std::barrier<> *steps;
static std::counting_semaphore<8> places{2};
static std::binary_semaphore never{0};
static std::atomic<int> inside, most;
static int numbers[THREADS];

static void meet(int me)
{
    begun->arrive_and_wait();
    for (int step = 1; step <= 5; step++) {
        numbers[me] = step;
        steps->arrive_and_wait();
        for (int number : numbers) CHECK(number == step);
        steps->arrive_and_wait();
    }
    places.acquire();
    int now = ++inside;
    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) continue;
    inside--;
    places.release();
    CHECK(!never.try_acquire() && !never.try_acquire_for(1ms));
}

/* Promises, on the heap, as what threads give each other is. */
static std::promise<int> *promises;
static std::shared_future<int> *announced;

static void promise(int me)
{
    if (me > 0) CHECK(promises[me - 1].get_future().get() == 10 * me);
    if (me < THREADS - 1) promises[me].set_value(10 * (me + 1));
    if (me == THREADS - 1) CHECK(announced->wait_for(0s) == std::future_status::ready || announced->valid());
    CHECK(announced->get() == 77);
}

static int fibonacci(int n)
{
    if (n < 3) return 1;
    auto one = std::async(std::launch::async, fibonacci, n - 1);
    return fibonacci(n - 2) + one.get();
}

/* Made once: what stands beside the guard, and on other pages. */
static std::atomic<int> made, tries;
struct table {
    int numbers[3000];
    table()
    {
        for (int i = 0; i < 3000; i++) numbers[i] = i;
        made++;
    }
};
static table &the_table()
{
    static table one;
    return one;
}
static int at_the_third_try()
{
    static int value = [] {
        if (++tries < 3) throw std::runtime_error("not yet");
        return 5;
    }();
    return value;
}
static std::once_flag once;
static int called;

static void statics(int)
{
    CHECK(the_table().numbers[2999] == 2999 && the_table().numbers[0] == 0);
    for (bool done = false; !done;) {
        try {
            done = at_the_third_try() == 5;
        } catch (const std::runtime_error &) {
        }
    }
    std::call_once(once, [] { called++; });
    CHECK(called == 1);
}

/* Pointers that are exchanged as a whole, and a condition for any lock. */
static std::shared_ptr<int> newest;
static std::atomic<std::shared_ptr<int>> newest_too;
static std::condition_variable_any *any;
static std::timed_mutex *timed;
static int at_the_condition;

static void pointers(int me)
{
    for (int i = 0; i < 20; i++) {
        std::atomic_store(&newest, std::make_shared<int>(me));
        newest_too.store(std::make_shared<int>(me));
        std::shared_ptr<int> one = std::atomic_load(&newest), other = newest_too.load();
        CHECK(*one >= 0 && *one < THREADS && *other >= 0 && *other < THREADS);
    }
    std::unique_lock lock(*timed);
    at_the_condition++;
    any->notify_all();
    any->wait(lock, [] { return at_the_condition == THREADS; });
}

int main(int argc, char **argv)
{
    std::string only = argc > 1 ? argv[1] : "";
    auto wanted = [&](const char *name) { return only.empty() || only == name; };
    if (wanted("wait")) {
        on_all(pass_on);
        CHECK(passed == 3 * THREADS && long_token == THREADS);
    }
    if (wanted("meet")) {
        begun = new std::latch(THREADS);
        steps = new std::barrier<>(THREADS);
        on_all(meet);
        CHECK(inside == 0 && most <= 2);
    }
    if (wanted("promise")) {
        promises = new std::promise<int>[THREADS - 1];
        auto announcement = new std::promise<int>;
        announced = new std::shared_future<int>(announcement->get_future().share());
        CHECK(announced->wait_for(1ms) == std::future_status::timeout);
        std::thread last([](std::promise<int> *announcement) { announcement->set_value(77); }, announcement);
        on_all(promise);
        last.join();
        auto task = new std::packaged_task<int(int)>(fibonacci);
        auto result = task->get_future();
        std::thread runs([](std::packaged_task<int(int)> *task) { (*task)(6); }, task);
        CHECK(result.get() == 8);
        runs.join();
    }
    if (wanted("statics")) {
        on_all(statics);
        CHECK(made == 1 && tries == 3);
    }
    if (wanted("pointers")) {
        any = new std::condition_variable_any;
        timed = new std::timed_mutex;
        on_all(pointers);
        newest_too.store(nullptr);
    }
    std::puts("atomic waits: all right");
}
