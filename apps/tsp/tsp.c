/* The travelling salesman: branch and bound with a shared stack of partial tours and a shared best tour
 * [Cashmere05 §3.2; Strings §3.5].
 *
 * A partial tour is taken from the stack; a short one is extended by every possible next city and the extensions are
 * pushed, a longer one is searched to its end alone.  The stack stands under one mutex with a condition variable for
 * processors that find it empty while others may still push; the best tour stands under another.  A processor works
 * with the best length it knew last and looks again now and then: an old one costs time, not correctness.
 *
 * Which shortest tour is found depends on timing when there are several, its length does not: the checksum is of the
 * distances and the length.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <finespun/finespun.h>

#include "../common/options.h"
#include "../common/random.h"
#include "../common/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CITIES_MAX = 20, SHARED_DEPTH = 4, STACK_MAX = 4096, LOOK_EVERY = 20000 };

static const char name[] = "tsp";

typedef struct choices {
    uint64_t size, seed, bound;
    bool verify, sequential;
} choices;

typedef struct map {
    unsigned cities;
    unsigned bound; /* of a partial tour: 0 its length, 1 with what the open cities need at least */
    uint32_t distance[CITIES_MAX][CITIES_MAX];
    uint32_t two_nearest[CITIES_MAX]; /* sum of a city's two shortest roads */
} map;

typedef struct tour {
    uint8_t city[CITIES_MAX];
    uint32_t count, length; /* of what is fixed so far */
} tour;

typedef struct best {
    fsp_mutex_t mutex;
    tour tour;
} best;

typedef struct stack {
    fsp_mutex_t mutex;
    fsp_cond_t pushed_or_done;
    uint32_t busy; /* processors that hold a partial tour and may still push */
    uint32_t count;
    tour tours[STACK_MAX];
} stack;

/* What only is read, what seldom changes and what always does: pages of their own. */
typedef struct job {
    map map;
    _Alignas(4096) best best;
    _Alignas(4096) stack stack;
    double seconds;
} job;

/* One processor's (or the sequential program's) search; `shared` is NULL when there is nobody to share with. */
typedef struct search {
    const map *map;
    best *shared;
    tour best; /* the best one known here */
    uint64_t visited;
} search;

static void make_map(map *map, const choices *choices)
{
    double x[CITIES_MAX], y[CITIES_MAX];
    unsigned cities = map->cities = (unsigned)choices->size;
    uint64_t seed = choices->seed;
    map->bound = (unsigned)choices->bound;
    for (unsigned i = 0; i < cities; i++) {
        x[i] = 1000 * random_unit(random_at(seed, i, 0));
        y[i] = 1000 * random_unit(random_at(seed, i, 1));
    }
    for (unsigned i = 0; i < cities; i++) {
        uint32_t nearest = UINT32_MAX, second = UINT32_MAX;
        for (unsigned j = 0; j < cities; j++) {
            uint32_t road = (uint32_t)sqrt((x[i] - x[j]) * (x[i] - x[j]) + (y[i] - y[j]) * (y[i] - y[j]));
            map->distance[i][j] = road;
            if (j != i && road < nearest) {
                second = nearest;
                nearest = road;
            } else if (j != i && road < second) {
                second = road;
            }
        }
        map->two_nearest[i] = nearest + second;
    }
}

static uint32_t visited_set(const tour *tour)
{
    uint32_t set = 0;
    for (uint32_t i = 0; i < tour->count; i++)
        set |= UINT32_C(1) << tour->city[i];
    return set;
}

/* No way to close this tour is shorter: every open city needs two roads, the last and the first one each. */
static uint32_t lower_bound(const map *map, const tour *tour, uint32_t visited)
{
    uint32_t twice = 0;
    if (map->bound == 0)
        return tour->length;
    for (unsigned city = 0; city < map->cities; city++)
        if ((visited >> city & 1) == 0)
            twice += map->two_nearest[city];
    return tour->length + twice / 2;
}

/* The open cities, nearest to the tour's end first. */
static unsigned open_cities(const map *map, const tour *tour, uint32_t visited, uint8_t open[CITIES_MAX])
{
    const uint32_t *road = map->distance[tour->city[tour->count - 1]];
    unsigned count = 0;
    for (uint8_t city = 0; city < map->cities; city++) {
        if (visited >> city & 1)
            continue;
        unsigned place = count++;
        for (; place > 0 && road[open[place - 1]] > road[city]; place--)
            open[place] = open[place - 1];
        open[place] = city;
    }
    return count;
}

static void extend(const map *map, tour *tour, uint8_t city)
{
    tour->length += map->distance[tour->city[tour->count - 1]][city];
    tour->city[tour->count++] = city;
}

static void shrink(const map *map, tour *tour)
{
    tour->count--;
    tour->length -= map->distance[tour->city[tour->count - 1]][tour->city[tour->count]];
}

/* Exchanges news with the shared best tour, in both directions. */
static void share_best(search *search)
{
    if (search->shared == NULL)
        return;
    fsp_mutex_lock(&search->shared->mutex);
    if (search->best.length < search->shared->tour.length)
        search->shared->tour = search->best;
    else
        search->best = search->shared->tour;
    fsp_mutex_unlock(&search->shared->mutex);
}

static void offer(search *search, const tour *tour)
{
    uint32_t closed = tour->length + search->map->distance[tour->city[tour->count - 1]][tour->city[0]];
    if (closed >= search->best.length)
        return;
    search->best = *tour;
    search->best.length = closed;
    share_best(search);
}

static void search_below(search *search, tour *tour, uint32_t visited)
{
    uint8_t open[CITIES_MAX];
    if (++search->visited % LOOK_EVERY == 0)
        share_best(search);
    if (tour->count == search->map->cities) {
        offer(search, tour);
        return;
    }
    if (lower_bound(search->map, tour, visited) >= search->best.length)
        return;
    unsigned count = open_cities(search->map, tour, visited, open);
    for (unsigned i = 0; i < count; i++) {
        extend(search->map, tour, open[i]);
        search_below(search, tour, visited | UINT32_C(1) << open[i]);
        shrink(search->map, tour);
    }
}

/* Takes a partial tour, the one taken before being dealt with if there was one; false when there is none and there will be
 * none. */
static bool take(stack *stack, tour *tour, bool had_one)
{
    fsp_mutex_lock(&stack->mutex);
    if (had_one && --stack->busy == 0 && stack->count == 0)
        fsp_cond_broadcast(&stack->pushed_or_done);
    while (stack->count == 0 && stack->busy > 0)
        fsp_cond_wait(&stack->pushed_or_done, &stack->mutex);
    bool found = stack->count > 0;
    if (found) {
        *tour = stack->tours[--stack->count];
        stack->busy++;
    }
    fsp_mutex_unlock(&stack->mutex);
    return found;
}

/* Pushes every extension, the nearest last so that it is taken first.  The stack has room: it is searched depth first,
 * so it holds at most cities * SHARED_DEPTH tours for each processor. */
static bool push_extensions(stack *stack, const map *map, const tour *from)
{
    uint8_t open[CITIES_MAX];
    unsigned count = open_cities(map, from, visited_set(from), open);
    fsp_mutex_lock(&stack->mutex);
    bool room = stack->count + count <= STACK_MAX;
    for (unsigned i = count; room && i-- > 0;) {
        tour *next = &stack->tours[stack->count++];
        *next = *from;
        extend(map, next, open[i]);
    }
    if (room)
        fsp_cond_broadcast(&stack->pushed_or_done);
    fsp_mutex_unlock(&stack->mutex);
    return room;
}

static void worker(void *argument)
{
    job *job = argument;
    search search = {.map = &job->map, .shared = &job->best};
    tour tour;
    search.best.length = UINT32_MAX;
    fsp_barrier_all();
    double start = seconds_now();
    for (bool had_one = false; take(&job->stack, &tour, had_one); had_one = true) {
        share_best(&search);
        bool shared_out = tour.count < SHARED_DEPTH && tour.count + 1 < job->map.cities &&
                          push_extensions(&job->stack, &job->map, &tour);
        if (!shared_out)
            search_below(&search, &tour, visited_set(&tour));
    }
    fsp_barrier_all();
    if (fsp_processor() == 0)
        job->seconds = seconds_now() - start;
}

/* The length of the shortest tour by dynamic programming over sets of cities (Held and Karp): cost[set][last] is the
 * shortest way from city 0 through the set (of cities 1, 2, ...) that ends in `last`. */
static uint32_t shortest_by_sets(const map *map)
{
    unsigned others = map->cities - 1;
    size_t sets = (size_t)1 << others;
    uint32_t *cost = private_alloc(name, sets * others * sizeof *cost), shortest = UINT32_MAX;
    memset(cost, 0xff, sets * others * sizeof *cost);
    for (unsigned last = 0; last < others; last++)
        cost[((size_t)1 << last) * others + last] = map->distance[0][last + 1];
    for (size_t set = 1; set < sets; set++) {
        for (unsigned last = 0; last < others; last++) {
            uint32_t here = cost[set * others + last];
            for (unsigned next = 0; here != UINT32_MAX && next < others; next++) {
                if (set >> next & 1)
                    continue;
                uint32_t *there = &cost[(set | (size_t)1 << next) * others + next];
                uint32_t length = here + map->distance[last + 1][next + 1];
                *there = length < *there ? length : *there;
            }
        }
    }
    for (unsigned last = 0; last < others; last++) {
        uint32_t closed = cost[(sets - 1) * others + last] + map->distance[last + 1][0];
        shortest = closed < shortest ? closed : shortest;
    }
    free(cost);
    return shortest;
}

static verdict verify(const map *map, const tour *tour)
{
    verdict verdict = {0};
    uint32_t length = 0, expected = shortest_by_sets(map), visited = 0;
    if (tour->count != map->cities)
        verdict_wrong(&verdict, "the tour has %u cities, expected %u", tour->count, map->cities);
    for (unsigned i = 0; i < map->cities && !verdict.wrong; i++) {
        unsigned city = tour->city[i], next = tour->city[(i + 1) % map->cities];
        if (city >= map->cities || next >= map->cities || (visited >> city & 1))
            verdict_wrong(&verdict, "the tour is no permutation: city %u at place %u", city, i);
        else
            length += map->distance[city][next];
        visited |= UINT32_C(1) << (city % 32);
    }
    if (length != tour->length)
        verdict_wrong(&verdict, "the tour's length is said to be %u, but is %u", tour->length, length);
    if (length != expected)
        verdict_wrong(&verdict, "length: got %u, expected %u", length, expected);
    return verdict;
}

static tour solve_alone(const map *map)
{
    search search = {.map = map};
    tour start = {.count = 1};
    search.best.length = UINT32_MAX;
    search_below(&search, &start, 1);
    return search.best;
}

static int finish(const choices *choices, const map *map, const tour *best, double seconds)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < map->cities; i++)
        sum = checksum_bytes(sum, map->distance[i], map->cities * sizeof map->distance[i][0]);
    report_time(name, seconds);
    report_line(name, "length %u", best->length);
    report_checksum(name, checksum_bytes(sum, &best->length, sizeof best->length));
    if (!choices->verify)
        return 0;
    verdict verdict = verify(map, best);
    if (!choices->sequential && solve_alone(map).length != best->length)
        verdict_wrong(&verdict, "length: got %u, the sequential program has another", best->length);
    return report_verdict(name, &verdict);
}

static int run_sequential(const choices *choices)
{
    map map;
    make_map(&map, choices);
    report_line(name, "size %" PRIu64 " sequential", choices->size);
    double start = seconds_now();
    tour best = solve_alone(&map);
    return finish(choices, &map, &best, seconds_now() - start);
}

static int run_shared(const choices *choices)
{
    job *job = fsp_aligned_alloc(_Alignof(struct job), sizeof *job);
    memset(job, 0, sizeof *job);
    make_map(&job->map, choices);
    job->best.tour.length = UINT32_MAX;
    job->stack.tours[0].count = 1; /* city 0 is where it starts */
    job->stack.count = 1;
    report_line(name, "size %" PRIu64 " processors %d", choices->size, fsp_processors());
    fsp_parallel(worker, job);
    int code = finish(choices, &job->map, &job->best.tour, job->seconds);
    fsp_free(job);
    return code;
}

int main(int argc, char **argv)
{
    static const size_names sizes = {{9, 9}, {13, 13}, {17, 17}};
    choices choices = {.size = 13, .seed = 1, .bound = 1};
    const option options[] = {
        {"--size", OPTION_SIZE, &choices.size, 3, CITIES_MAX, &sizes, "cities"},
        {"--seed", OPTION_NUMBER, &choices.seed, 0, UINT64_MAX, NULL, "where the cities lie"},
        {"--bound", OPTION_NUMBER, &choices.bound, 0, 1, NULL, "cut tours by 0: their length, 1: what open cities need too"},
        {"--verify", OPTION_SWITCH, &choices.verify, 0, 0, NULL, "check the tour, and its length by dynamic programming"},
        {"--sequential", OPTION_SWITCH, &choices.sequential, 0, 0, NULL, "run alone, in private memory"},
    };
    const program program = {name, "the travelling salesman by branch and bound", options,
                             sizeof options / sizeof *options};
    options_read(&program, argc, argv);
    if (choices.sequential)
        return run_sequential(&choices);
    fsp_init(&argc, &argv);
    int code = run_shared(&choices);
    fsp_finalize();
    return code;
}
