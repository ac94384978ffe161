# The applications and the C examples; included by the project's Makefile.
#   make apps examples      builds build/apps/NAME and build/examples/NAME
# They use the public headers and the shared library only, and find it beside themselves (../lib).
APP_LIBRARY ?= build/lib/libfinespun.so
# Functions and loops begin where they would in any program: where a linker happens to put a short inner loop was worth 40 % of clu.
APP_CFLAGS ?= -O3 -march=x86-64-v2 -falign-functions=64 -falign-loops=64 -std=c11 -Wall -Wextra -Werror
APP_LDFLAGS = -Lbuild/lib -lfinespun -Wl,-rpath,'$$ORIGIN/../lib' -lm -lpthread

APPS = sor sor-in-place lu clu matmul gauss tsp stress
# Written with TreadMarks' calls, not ours.
TMK_APPS = jacobi knapsack
C_EXAMPLES = hello spmd

APP_HEADERS = $(wildcard include/finespun/*.h apps/common/*.h)
APP_COMMON = apps/common/options.c apps/common/report.c
LU_SHARED = apps/lu/program.c apps/lu/tiles.c

build/apps/sor: apps/sor/sor.c
build/apps/sor-in-place: apps/sor/in_place.c
build/apps/lu: apps/lu/lu.c $(LU_SHARED) apps/lu/program.h apps/lu/tiles.h
build/apps/clu: apps/clu/clu.c $(LU_SHARED) apps/lu/program.h apps/lu/tiles.h
build/apps/matmul: apps/matmul/matmul.c
build/apps/gauss: apps/gauss/gauss.c
build/apps/tsp: apps/tsp/tsp.c
build/apps/stress: $(wildcard apps/stress/*.c) apps/stress/stress.h

.PHONY: apps examples
apps: $(APPS:%=build/apps/%) $(TMK_APPS:%=build/apps/tmk-%)
examples: $(C_EXAMPLES:%=build/examples/%)

$(APPS:%=build/apps/%): $(APP_COMMON) $(APP_HEADERS) | $(APP_LIBRARY)
	@mkdir -p $(@D)
	$(CC) $(APP_CFLAGS) -Iinclude -o $@ $(filter %.c,$^) $(APP_LDFLAGS)

$(TMK_APPS:%=build/apps/tmk-%): build/apps/tmk-%: apps/tmk/%.c apps/tmk/program.h include/finespun/tmk.h \
		build/lib/libfinespun_tmk.a build/bin/fspcc build/include | $(APP_LIBRARY)
	@mkdir -p $(@D)
	build/bin/fspcc --tmk -cc=$(CC) $(APP_CFLAGS) -D_DEFAULT_SOURCE -o $@ $< -Wl,-rpath,'$$ORIGIN/../lib' -lm

$(C_EXAMPLES:%=build/examples/%): build/examples/%: examples/%.c $(APP_HEADERS) | $(APP_LIBRARY)
	@mkdir -p $(@D)
	$(CC) $(APP_CFLAGS) -Iinclude -o $@ $< $(APP_LDFLAGS)
