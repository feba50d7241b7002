# The programs are found, not listed: every folder under apps/ and bench/ with a main.go.

GO       ?= go
PREFIX   ?= /usr/local
BINDIR   ?= $(PREFIX)/bin
DESTDIR  ?=
BLDDIR   ?= build
BLDFLAGS ?=
PKG      ?= ./...
ARGS     ?=
BENCH    ?= .
COUNT    ?= 1
FUZZTIME ?= 10s

MAINS    := $(patsubst %/main.go,%,$(wildcard apps/*/main.go bench/*/main.go))
PROGRAMS := $(notdir $(MAINS))
# The local cluster and the load generators are for people who work on nsq, not for a server.
INSTALLED := $(filter-out nsq_cluster,$(notdir $(filter apps/%,$(MAINS))))
EXE      := $(if $(filter windows,$(GOOS)),.exe)

.DEFAULT_GOAL := build
.PHONY: all build $(PROGRAMS) run test check vet fmt staticcheck race bench fuzz install clean help

all build: $(PROGRAMS) ## build every program into BLDDIR (make nsqd builds one)

define program
$(notdir $(1)):
	$$(GO) build $$(BLDFLAGS) -o $$(BLDDIR)/$$@ ./$(1)
endef
$(foreach main,$(MAINS),$(eval $(call program,$(main))))

run: nsq_cluster ## start a local cluster; ARGS='--nsqd 3' passes flags, Ctrl-C stops it
	$(BLDDIR)/nsq_cluster $(ARGS)

test: ## run all tests; PKG=./nsqd/... picks packages
	$(GO) test -timeout 5m $(PKG)

check: fmt vet staticcheck race ## run everything that a change has to pass

fmt: ## fail if gofmt would change a file, and name it
	@files=$$(gofmt -l .) && if [ -n "$$files" ]; then echo "gofmt -w $$files"; exit 1; fi

vet: ## run go vet
	$(GO) vet $(PKG)

staticcheck: ## run staticcheck
	$(GO) tool staticcheck $(PKG)

race: ## run all tests under the race detector
	$(GO) test -race -timeout 8m $(PKG)

bench: ## run the micro-benchmarks; BENCH, COUNT and PKG narrow or repeat them
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(PKG)

fuzz: ## run each fuzz target of PKG for FUZZTIME
	@targets=$$($(GO) test -list '^Fuzz' $(PKG)) || { echo "$$targets"; exit 1; }; \
	echo "$$targets" | awk '/^Fuzz/ { names = names " " $$1 } /^ok/ { split(names, n, " "); for (i in n) print $$2, n[i]; names = "" }' | \
	while read -r package target; do \
		echo "== $$package $$target"; \
		$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$package </dev/null || exit 1; \
	done

install: $(INSTALLED) ## install the programs into DESTDIR/BINDIR
	install -d -m 755 "$(DESTDIR)$(BINDIR)"
	$(foreach program,$(INSTALLED),install -m 755 "$(BLDDIR)/$(program)" "$(DESTDIR)$(BINDIR)/$(program)$(EXE)" && ) true

# Only what a build put there, for BLDDIR may be anybody's folder.
clean: ## remove the programs from BLDDIR, and BLDDIR if nothing else is in it
	rm -f $(foreach program,$(PROGRAMS),"$(BLDDIR)/$(program)")
	@if [ -d "$(BLDDIR)" ]; then rmdir "$(BLDDIR)" 2>/dev/null || echo "$(BLDDIR) has other files, left alone"; fi

help: ## show this list
	@awk -F ':.*## ' '/^[a-z ]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo '  one of:      $(PROGRAMS)'
