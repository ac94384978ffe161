# Manual pages, completions, pkg-config and CMake files, and what `make install` does; included by the project's Makefile.
#   make install    copies what `make` has built to DESTDIR/PREFIX; builds only where nothing has been built yet, so that it can be
#                   run as another user, who may have no cargo
#   make uninstall  removes what make install has put there, and nothing else

.PHONY: pages install uninstall
pages: binaries fspcc
	@build/bin/finespun pages build/share build/bin/fspcc

PACKAGING = build/lib/pkgconfig/finespun.pc build/lib/pkgconfig/finespun-tmk.pc \
	build/lib/cmake/finespun/finespun-config.cmake build/lib/cmake/finespun/finespun-config-version.cmake

# Their paths are relative to themselves: the folder that holds bin and lib may be moved.
FILLED = sed 's|@VERSION@|$(VERSION)|; s|@ABI@|$(ABI)|; s|@MAJOR@|$(word 1,$(subst ., ,$(VERSION)))|; s|@MINOR@|$(word 2,$(subst ., ,$(VERSION)))|'
build/lib/pkgconfig/%.pc: packaging/%.pc.in Cargo.toml packaging/packaging.mk
	@mkdir -p $(@D)
	@$(FILLED) $< >$@
build/lib/cmake/finespun/%.cmake: packaging/%.cmake.in Cargo.toml packaging/packaging.mk
	@mkdir -p $(@D)
	@$(FILLED) $< >$@

install: $(if $(and $(wildcard build/bin/finespun),$(wildcard build/libexec/finespun/apps/tsp)),,build)
	@packaging/install.sh add '$(PREFIX)' '$(DESTDIR)' $(VERSION) $(ABI)

uninstall:
	@packaging/install.sh remove '$(PREFIX)' '$(DESTDIR)'
