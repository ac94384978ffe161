// Threads of C++ on any node: built by `fspc++ --pthread`, run by tests/cluster/pthread.rs.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#define CHECK(condition)                                                                                           \
    do {                                                                                                           \
        if (!(condition)) {                                                                                        \
            std::fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);                     \
            std::exit(1);                                                                                          \
        }                                                                                                          \
    } while (0)

// A queue that threads on several nodes use, made by a constructor before main.
class Queue {
    std::mutex lock;
    std::condition_variable change;
    std::deque<std::string> words;
    bool closed = false;

public:
    void put(std::string word)
    {
        std::lock_guard<std::mutex> guard(lock);
        words.push_back(std::move(word));
        change.notify_one();
    }
    void close()
    {
        std::lock_guard<std::mutex> guard(lock);
        closed = true;
        change.notify_all();
    }
    bool take(std::string &word)
    {
        std::unique_lock<std::mutex> guard(lock);
        change.wait(guard, [this] { return closed || !words.empty(); });
        if (words.empty()) return false;
        word = std::move(words.front());
        words.pop_front();
        return true;
    }
    bool is_quiet_for(std::chrono::milliseconds time)
    {
        std::unique_lock<std::mutex> guard(lock);
        return !change.wait_for(guard, time, [this] { return !words.empty(); });
    }
};

static Queue queue;
static std::map<std::string, int> counts;
static std::shared_mutex counts_lock;
static std::recursive_mutex twice;
static std::once_flag once;
static int onces, ended;

struct Ends {
    ~Ends()
    {
        std::lock_guard<std::recursive_mutex> outer(twice), inner(twice);
        ended++;
    }
};
static thread_local Ends ends;

static void count_words()
{
    std::string word;
    (void)&ends;
    std::call_once(once, [] { onces++; });
    while (queue.take(word)) {
        std::unique_lock<std::shared_mutex> guard(counts_lock);
        counts[word]++;
    }
}

int main()
{
    std::vector<std::thread> threads;
    CHECK(queue.is_quiet_for(std::chrono::milliseconds(5)));
    for (int i = 0; i < 5; i++) threads.emplace_back(count_words);
    for (int i = 0; i < 4; i++)
        threads.emplace_back([i] {
            for (int j = 0; j < 40; j++) queue.put("a word that is too long to be kept inside of a string " + std::to_string((i + j) % 10));
        });
    for (int i = 5; i < 9; i++) threads[i].join();
    queue.close();
    for (int i = 0; i < 5; i++) threads[i].join();
    std::shared_lock<std::shared_mutex> guard(counts_lock);
    CHECK(counts.size() == 10 && onces == 1);
    for (const auto &count : counts) CHECK(count.second == 16);
    std::lock_guard<std::recursive_mutex> ended_guard(twice);
    CHECK(ended == 5);

    std::mutex *done = new std::mutex;
    std::condition_variable *told = new std::condition_variable;
    bool *finished = new bool(false);
    std::thread([=] {
        std::lock_guard<std::mutex> guard(*done);
        *finished = true;
        told->notify_all();
    }).detach();
    std::unique_lock<std::mutex> waiting(*done);
    told->wait(waiting, [=] { return *finished; });
    try {
        std::thread().join();
        CHECK(false);
    } catch (const std::system_error &error) {
        CHECK(error.code() == std::errc::invalid_argument);
    }
    std::puts("classes: all right");
    return 0;
}
