// A C++ program by fspc++: containers, strings and objects with virtual functions made by main, read and grown on every
// processor; std::cout and exceptions in processes that never ran main.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include <finespun/parmacs.h>

#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

MAIN_ENV

struct Shape {
    virtual ~Shape() = default;
    virtual double area() const = 0;
};
struct Square : Shape {
    double side;
    explicit Square(double side) : side(side) {}
    double area() const override { return side * side; }
};

static std::map<std::string, int> words{ { "a word that is longer than a short string", 1 } };
static std::vector<std::unique_ptr<Shape>> shapes;
static long processes = 1, ended;
LOCKDEC(mutex)
BARDEC(barrier)

static double checked(int index)
{
    if (index >= static_cast<int>(shapes.size()))
        throw std::out_of_range("no such shape");
    return shapes[index]->area();
}

static void work()
{
    LOCK(mutex)
    words[std::string("word ") + std::to_string(ended) + " of those that the processes have put in"] = 2;
    shapes.push_back(std::make_unique<Square>(ended + 1));
    const long me = ended++;
    UNLOCK(mutex)
    BARRIER(barrier, processes)
    LOCK(mutex)
    double sum = 0;
    try {
        for (int index = 0;; index++)
            sum += checked(index);
    } catch (const std::out_of_range &) {
    }
    long expected = 0;
    for (long side = 1; side <= processes; side++)
        expected += side * side;
    if (sum != expected + 9 || static_cast<long>(words.size()) != processes + 1)
        exit(3);
    if (me == processes - 1)
        std::cout << "cout works, " << sum << std::endl;
    UNLOCK(mutex)
}

int main(int argc, char **argv)
{
    if (argc > 1)
        processes = std::atol(argv[1]);
    shapes.push_back(std::make_unique<Square>(3));
    MAIN_INITENV()
    CREATE(work, processes)
    WAIT_FOR_END(processes)
    shapes.clear();
    std::cout << "classes: all holds" << std::endl;
    return words.size() == static_cast<size_t>(processes) + 1 ? 0 : 1;
}
