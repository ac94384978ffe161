/* Floors: what the machine itself takes for the parts of each operation, with nothing of Finespun's around them.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef FLOORS_H
#define FLOORS_H

#include "../measure.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PAGE 4096u

extern size_t rounds;

/* Zeros; ends the program if there are none. */
void *map(size_t bytes, int protection);

/* What processes share; each part in lines of its own. */
typedef struct shared {
    _Alignas(128) _Atomic uint32_t ping;
    _Alignas(128) _Atomic uint32_t pong;
    _Alignas(128) pthread_barrier_t barrier;
    pthread_mutex_t mutex;
    _Alignas(128) char ring[PAGE];
} shared;
shared *share(unsigned processes);
/* Another process, on another core, does what it must and ends; `memory` is for the body. */
pid_t process(int number, void (*body)(shared *), shared *memory);
/* Looks at a word until it has a value. */
void until(_Atomic uint32_t *word, uint32_t value);

/* Many a sample, as the micro benchmark has them. */
#define BATCH 32

/* Each prints its lines. */
void floors_of_faults(void);
void floors_of_pairs(void);
void floors_of_words(void);
void floors_of_tcp(void);

#endif
