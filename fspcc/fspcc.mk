# The compiler driver fspcc and what it links into programs; included by the project's Makefile.
#   make fspcc      builds build/bin/fspcc, build/bin/fspc++, build/lib/finespun, build/share/finespun

# By addresses that hold wherever the program is linked.
FSPCC_CFLAGS = -std=gnu11 -O2 -fPIC -Wall -Wextra -Werror
FSPCC_OBJECTS = $(patsubst fspcc/%.c,build/fspcc/%.o,$(wildcard fspcc/*.c))
FSPCC_PARTS = build/lib/finespun/globals.ld build/lib/finespun/wraps build/lib/finespun/pthread.wraps \
	build/lib/finespun/stdthread.wraps build/lib/finespun/clib.wraps build/lib/finespun/atomics.wraps \
	build/lib/finespun/stdatomic.h build/lib/finespun/builtins.h \
	build/lib/finespun/libfspprogram.a build/lib/finespun/libfspcxx.a

# OpenMP's runtime, and what gcc -fopenmp reads when it links, in place of its own: libgomp is not linked.
FSPCC_OPENMP = $(patsubst fspcc/%.c,build/fspcc/%.o,$(wildcard fspcc/openmp/*.c))
FSPCC_PARTS += build/lib/finespun/libfspopenmp.a build/lib/finespun/libgomp.spec

.PHONY: fspcc
fspcc: build/bin/fspcc build/bin/fspc++ $(FSPCC_PARTS) build/share/finespun/c.m4.finespun

$(FSPCC_OPENMP): $(wildcard fspcc/openmp/*.h)

build/fspcc/%.o: fspcc/%.c $(wildcard fspcc/*.h include/finespun/*.h)
	@mkdir -p $(@D)
	$(CC) $(FSPCC_CFLAGS) -Iinclude -c -o $@ $<

build/lib/finespun/libfspprogram.a: $(FSPCC_OBJECTS)
	@mkdir -p $(@D) && rm -f $@
	$(AR) rcs $@ $^

build/lib/finespun/libfspopenmp.a: $(FSPCC_OPENMP)
	@mkdir -p $(@D) && rm -f $@
	$(AR) rcs $@ $^

build/lib/finespun/libgomp.spec: fspcc/openmp/libgomp.spec
	@mkdir -p $(@D)
	install -m 644 $< $@

# What has names of the C and C++ libraries: only where it is asked for.
build/lib/finespun/libfspcxx.a: $(patsubst fspcc/%.c,build/fspcc/%.o,$(wildcard fspcc/cxx/*.c))
	@mkdir -p $(@D) && rm -f $@
	$(AR) rcs $@ $^

build/lib/finespun/%: fspcc/%
	@mkdir -p $(@D)
	install -m 644 $< $@

build/share/finespun/%: fspcc/%
	@mkdir -p $(@D)
	install -m 644 $< $@

build/bin/fspcc: fspcc/fspcc
	@mkdir -p $(@D)
	install -m 755 $< $@

build/bin/fspc++: build/bin/fspcc
	ln -sf fspcc $@
