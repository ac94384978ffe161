# What `finespun bench` runs; included by the project's Makefile.
#   make bench-programs     builds build/libexec/finespun/: the micro benchmark, the floors, the applications on native threads,
#                           and the peers whose compilers are installed (scripts/prepare.sh bench installs them)
LIBEXEC = build/libexec/finespun
NATIVE_APPS = sor sor-in-place lu clu matmul gauss tsp

.PHONY: bench-programs bench-peers
bench-programs: $(LIBEXEC)/micro $(LIBEXEC)/floors $(NATIVE_APPS:%=$(LIBEXEC)/native/%) $(NATIVE_APPS:%=$(LIBEXEC)/apps/%)

MICRO = benches/measure.h $(wildcard benches/micro/*.h benches/micro/*.c)
$(LIBEXEC)/micro: $(MICRO) $(APP_COMMON) $(APP_HEADERS) | $(APP_LIBRARY)
	@mkdir -p $(@D)
	$(CC) $(APP_CFLAGS) -Iinclude -o $@ $(filter %.c,$^) -Lbuild/lib -lfinespun -Wl,-rpath,'$$ORIGIN/../../lib'

$(LIBEXEC)/floors: benches/measure.h $(wildcard benches/floors/*.h benches/floors/*.c)
	@mkdir -p $(@D)
	$(CC) $(APP_CFLAGS) -o $@ $(filter %.c,$^) -lpthread

# The same sources, once with the library and once with the few of its functions that they use, on native threads.
define both_ways
$(LIBEXEC)/native/$(1): $(filter apps/%.c,$(2)) benches/native/native.c benches/measure.h $(APP_COMMON) $(APP_HEADERS)
	@mkdir -p $$(@D)
	$$(CC) $$(APP_CFLAGS) -Iinclude -o $$@ $$(filter %.c,$$^) -lm -lpthread
$(LIBEXEC)/apps/$(1): $(filter apps/%.c,$(2)) $(APP_COMMON) $(APP_HEADERS) | $(APP_LIBRARY)
	@mkdir -p $$(@D)
	$$(CC) $$(APP_CFLAGS) -Iinclude -o $$@ $$(filter %.c,$$^) -Lbuild/lib -lfinespun -Wl,-rpath,'$$$$ORIGIN/../../../lib' -lm -lpthread
endef
$(eval $(call both_ways,sor,apps/sor/sor.c))
$(eval $(call both_ways,sor-in-place,apps/sor/in_place.c))
$(eval $(call both_ways,lu,apps/lu/lu.c $(LU_SHARED)))
$(eval $(call both_ways,clu,apps/clu/clu.c $(LU_SHARED)))
$(eval $(call both_ways,matmul,apps/matmul/matmul.c))
$(eval $(call both_ways,gauss,apps/gauss/gauss.c))
$(eval $(call both_ways,tsp,apps/tsp/tsp.c))

PEER_CFLAGS = -O2 -Wall -Wextra -Werror
GA_LIBRARIES = -lga-openmpi -larmci-openmpi -lscalapack-openmpi -llapack -lblas -lgfortran -lm
bench-peers: $(if $(shell command -v mpicc),$(LIBEXEC)/peers/mpi) $(if $(shell command -v oshcc),$(LIBEXEC)/peers/shmem) \
	$(if $(wildcard /usr/lib/*/libga-openmpi.a),$(LIBEXEC)/peers/ga)
$(LIBEXEC)/peers/%: benches/peers/%.c benches/peers/peer.h benches/measure.h
	@mkdir -p $(@D)
	$(if $(filter shmem,$*),oshcc,mpicc) $(PEER_CFLAGS) -o $@ $< $(if $(filter ga,$*),$(GA_LIBRARIES))
