/* Floors: what the machine itself takes for the parts of each operation, with nothing of Finespun's around them.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef FLOORS_H
#define FLOORS_H

#include "../measure.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PAGE 4096u

extern size_t rounds;

/* Zeros; ends the program if there are none. */
void *map(size_t bytes, int protection);

/* Another process, on another core, does what it must and ends; `memory` is for the body. */
typedef struct shared shared;
pid_t process(int number, void (*body)(shared *), shared *memory);

/* Each prints its lines. */
void floors_of_faults(void);
void floors_of_pairs(void);
void floors_of_tcp(void);

#endif
