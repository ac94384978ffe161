// Objects of the C++ library, used by threads that did not make them.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static void check(bool fact, const char *what)
{
    if (!fact) {
        std::cout << "objects: " << what << std::endl;
        std::exit(1);
    }
}

static int ended;
static std::mutex of_ended;

struct Counted {
    int value = 0;
    ~Counted()
    {
        std::lock_guard<std::mutex> held(of_ended);
        ended += value;
    }
};
static thread_local Counted counted;

// A file stream by reference: its buffer, its position and its state go along.
static void write_by_reference(const std::string &path)
{
    std::ofstream file(path);
    std::mutex lock;
    int next = 0;
    std::vector<std::thread> threads;
    file << "begun\n";
    for (int number = 0; number < 4; number++)
        threads.emplace_back([&] {
            for (int line = 0; line < 50; line++) {
                std::lock_guard<std::mutex> held(lock);
                file << "line " << next++ << " " << 0.5 << '\n';
            }
        });
    for (auto &thread : threads)
        thread.join();
    std::thread([&] { file.close(); }).join();
    std::ifstream back;
    std::thread([&] { back.open(path); }).join();
    std::string word;
    check(bool(back >> word) && word == "begun", "what main wrote first");
    for (int line = 0; line < 200; line++) {
        int number = -1;
        double half = 0;
        auto read = [&] { back >> word >> number >> half; };
        if (line % 50 == 0)
            std::thread(read).join();
        else
            read();
        check(back && number == line && half == 0.5, "a line that a thread wrote");
    }
}

static void catch_elsewhere()
{
    std::exception_ptr caught;
    std::thread([&] {
        try {
            throw std::runtime_error("from a thread");
        } catch (...) {
            caught = std::current_exception();
        }
    }).join();
    std::string said;
    std::thread([&] {
        try {
            std::rethrow_exception(caught);
        } catch (const std::exception &error) {
            said = error.what();
        }
    }).join();
    try {
        std::rethrow_exception(caught);
    } catch (const std::runtime_error &error) {
        check(said == error.what() && said == "from a thread", "the exception's text");
    }
    std::thread([&] {
        try {
            std::vector<int>(3).at(7);
        } catch (...) {
            caught = std::current_exception();
        }
    }).join();
    try {
        std::rethrow_exception(caught);
    } catch (const std::out_of_range &) {
        return;
    }
    check(false, "an exception of the library");
}

static void read_input()
{
    std::string line;
    int sum = 0;
    for (int number = 0; number < 4; number++) {
        std::thread([&] {
            check(bool(std::getline(std::cin, line)), "a line for a thread");
            sum += std::stoi(line);
        }).join();
        check(bool(std::getline(std::cin, line)), "a line for main");
        sum += std::stoi(line);
    }
    check(sum == 36, "every line once");
}

int main(int argc, char **argv)
{
    write_by_reference(argv[1]);
    catch_elsewhere();
    std::vector<std::thread> threads;
    for (int number = 1; number <= 4; number++)
        threads.emplace_back([number] { counted.value = number; });
    for (auto &thread : threads)
        thread.join();
    check(ended == 10, "destructors of thread_local objects");
    check(argc < 4 || std::thread::hardware_concurrency() == unsigned(std::atoi(argv[3])), "hardware_concurrency");
    if (std::string(argv[2]) == "input")
        read_input();
    std::cout << "objects: all right" << std::endl;
    return 0;
}
