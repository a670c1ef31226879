# Two commands are all a change needs: `make test` before every commit, `make proof`
# before a release. `make help` lists the rest.

GO    ?= go
GOFMT ?= $(shell $(GO) env GOROOT)/bin/gofmt

# The tests compile and run at most two packages at a time: the race detector and
# SQLite's fsyncs make more of them slower, not faster.
P ?= 2

# A process under the race detector waits a second at its end, and the tests start hundreds
# (https://go.dev/doc/articles/race_detector#Options).
export GORACE ?= atexit_sleep_ms=0

# CI=1 keeps the kinds of proof and cuts their sizes.
ifneq ($(CI),)
FUZZTIME  ?= 10s
CHECKS    ?= 1000
AGAIN     ?= 2
SKIP      ?= -skip '^TestScenarios$$|^TestSweep|^TestSymmetry$$'
FAULTS    ?= 1
KILLS     ?= 100
DURATION  ?= 60s
RACE      ?=
else
FUZZTIME  ?= 10m
CHECKS    ?= 20000
AGAIN     ?= 5
FAULTS    ?= 2
KILLS     ?= 300
DURATION  ?= 10m
SWEEP     ?= -full
SWEEP_PG  ?= -postgres 5
RACE      ?= -race
endif

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: test
test: tools build vet lint format race ## Everything a commit must pass: build, vet, staticcheck, gofmt, tests with the race detector, examples.

.PHONY: proof
proof: tools fuzz properties again sweep turns explore kill duel chaos chaos-postgres bench-waiting ## What takes longer than `make test`. CI=1 does less of each.

# What was found wrong stays in a directory that the output names.
.PHONY: chaos
chaos: ## Kill many processes on one store for DURATION (10m), then check every effect; POSTGRES=1 kills the store's server, too.
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && \
	$(GO) build -o "$$dir/pawl" ./cmd/pawl && $(GO) build -o "$$dir/chaos" ./internal/chaos/cmd && "$$dir/chaos" -duration $(DURATION) -pawl "$$dir/pawl" $(if $(POSTGRES),-postgres) $(if $(SEED),-seed $(SEED))

.PHONY: chaos-postgres
chaos-postgres:
	$(MAKE) --no-print-directory chaos POSTGRES=1

.PHONY: chaos-temporal
chaos-temporal: temporal-devserver ## The same on a Temporal server, which is killed, too.
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && (cd engine/temporal && $(GO) build -o "$$dir/chaos" ./internal/chaos) && \
	PAWL_TEMPORAL_DEVSERVER=$$($(MAKE) -s temporal-devserver) "$$dir/chaos" -duration $(DURATION) $(if $(SEED),-seed $(SEED))

.PHONY: bench
bench: ## Measure beside a floor in the same run; fails where a limit is passed.
	$(GO) run ./internal/bench -check

.PHONY: bench-waiting
bench-waiting: ## Measure a worker beside 100,000 waiting runs, in SQLite and PostgreSQL; fails where a limit is passed.
	$(GO) run ./internal/waiting $(if $(CI),-runs 10000)

.PHONY: compare
compare: ## Kill one payment in Pawl and in other SDKs at the same points; needs node and npm.
	cd bench/chaos/js && npm ci --no-audit --no-fund
	cd bench/chaos && $(GO) test . && $(GO) run .

# The server is a module of its own that takes about 5 minutes to compile, so the binary is kept, under a name that says what
# it was made of.
DEVSERVER := engine/temporal/devserver

.PHONY: temporal-devserver
temporal-devserver: ## Build the Temporal server for tests (5 minutes the first time) and print its path.
	@cd $(DEVSERVER) && cache=$${XDG_CACHE_HOME:-$$HOME/.cache}/pawl && \
	bin=$$cache/temporal-devserver-$$({ $(GO) version; cat go.mod go.sum main.go persistence.go; } | cksum | tr ' ' -) && \
	{ test -x "$$bin" || { mkdir -p "$$cache" && $(GO) build -p $(P) -ldflags='-s -w' -o "$$bin.$$$$" . && mv "$$bin.$$$$" "$$bin"; }; } && \
	echo "$$bin"

# What it prints: enginetest: NAME N cases, F failed.
.PHONY: enginetest
enginetest: temporal-devserver ## Play crashes and decisions on every host of runs: memory, SQLite, PostgreSQL, Temporal.
	cd enginetest && $(GO) test $(RACE) -timeout 30m -every 1
	cd engine/temporal/enginetest && PAWL_TEMPORAL_DEVSERVER=$$($(MAKE) -s -C $(CURDIR) temporal-devserver) $(GO) test -p $(P) -timeout 30m -every 1

.PHONY: temporal
temporal: ## Test engine/temporal against a Temporal server, and look for what its workflow must not do.
	@server=$$($(MAKE) --no-print-directory -s temporal-devserver) && lint=$$($(GO) tool -n staticcheck) && \
	cd engine/temporal && $(GO) vet ./... && $$lint ./... && $(GO) run go.temporal.io/sdk/contrib/tools/workflowcheck@v0.6.0 ./... && \
	PAWL_TEMPORAL_DEVSERVER=$$server $(GO) test $(RACE) -p $(P) -timeout 20m ./...

.PHONY: bench-temporal
bench-temporal: ## Measure a turn on Temporal beside an empty workflow; fails where the limit is passed.
	@server=$$($(MAKE) --no-print-directory -s temporal-devserver) && \
	cd engine/temporal && PAWL_TEMPORAL_DEVSERVER=$$server $(GO) run ./internal/bench -check

# Its own tests, and what vet says of it. staticcheck, which CI=1 leaves out, reads all of the server: minutes the first time.
.PHONY: devserver-check
devserver-check: temporal-devserver
	lint=$$($(GO) tool -n staticcheck) && cd $(DEVSERVER) && $(GO) vet -p $(P) . $(if $(CI),,&& $$lint .) && $(GO) test -p $(P) -timeout 20m .

.PHONY: fmt
fmt: ## Format the code.
	$(GOFMT) -w $$(git ls-files '*.go')

.PHONY: cover
cover: ## Write coverage.html and print the total.
	$(GO) test -p $(P) -coverpkg=./... -coverprofile=coverage.out ./...
	$(GO) tool cover -html=coverage.out -o coverage.html
	$(GO) tool cover -func=coverage.out | tail -1

# Parts of test.

.PHONY: tools build vet lint format race

tools:
	@v=$$($(GO) env GOVERSION 2>/dev/null | sed 's/^go//; s/ .*//'); \
	test -n "$$v" || { echo "missing: Go 1.26 or newer (https://go.dev/dl)"; exit 1; }; \
	printf '1.26\n%s\n' "$$v" | sort -V -C || { echo "missing: Go 1.26 or newer; this is Go $$v"; exit 1; }
	@test "$$($(GO) env CGO_ENABLED)" = 1 && command -v "$$($(GO) env CC)" >/dev/null || \
	{ echo "missing: gcc (or another C compiler in CC, and CGO_ENABLED=1); the race detector needs it"; exit 1; }
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || \
	{ echo "missing: a PostgreSQL server (on Debian: apt-get install postgresql); the tests of pgstore start one of their own"; exit 1; }
	@command -v pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ] || \
	{ echo "missing: pgbouncer (on Debian: apt-get install pgbouncer); the tests of pgstore start one of their own"; exit 1; }

build:
	$(GO) build ./...

vet:
	$(GO) vet ./...

lint:
	$(GO) tool staticcheck ./...

format:
	@wrong=$$($(GOFMT) -l $$(git ls-files '*.go')); \
	test -z "$$wrong" || { echo "not formatted (make fmt):"; echo "$$wrong"; exit 1; }

# Examples are tests too: their output is compared. What takes longest is begun first.
race:
	$(GO) test -race -p $(P) -timeout 20m ./scenarios ./...

# Parts of proof.

.PHONY: fuzz properties again sweep turns explore kill duel

# A fuzz target runs alone, so find them all first; P of them run side by side.
fuzz:
	@list=$$($(GO) test -p $(P) -list '^Fuzz' ./...) || { echo "$$list"; exit 1; }; \
	echo "$$list" | awk '/^Fuzz/{t[n++]=$$1} /^ok/{for(i=0;i<n;i++) print $$2, t[i]; n=0}' | \
	xargs -L 1 -P $(P) sh -c '$(MAKE) --no-print-directory fuzz-one PACKAGE=$$0 TARGET=$$1 || exit 255'

# Until Go 1.27 the end of -fuzztime may fail a target that found nothing
# (https://go.dev/issue/75804): such a run is made again, once.
.PHONY: fuzz-one
fuzz-one:
	@once() { $(GO) test -run '^$$' -fuzz '^$(TARGET)$$' -fuzztime $(FUZZTIME) -parallel 1 $(PACKAGE) </dev/null 2>&1; }; \
	echo "== $(PACKAGE) $(TARGET) $(FUZZTIME)"; \
	out=$$(once) && { echo "$(TARGET): $$(echo "$$out" | tail -n 1)"; exit 0; }; \
	echo "$$out"; \
	case "$$out" in *"Failing input"*) exit 1;; *"context deadline exceeded"*) once;; *) exit 1;; esac

# Every package that draws with rapid, with more draws.
properties:
	$(GO) test -p $(P) -timeout 4h $$($(GO) list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... | \
	awk '/pgregory.net\/rapid/{print $$1}') -rapid.checks=$(CHECKS)

# Goroutines and processes meet in another order each time.
again:
	$(GO) test -race -p $(P) -timeout 4h -count $(AGAIN) $(SKIP) . ./journal/... ./session/... ./sqlstore/... ./scenarios/...

# A thousand turns on a conversation that the server holds, in every cell.
turns:
	$(GO) test -timeout 4h -run '^TestScenarios$$/^S59$$' ./scenarios -turns 1000

# Every order of what can happen to a small run, with so many faults on one path.
explore:
	$(GO) test -v -timeout 4h -run '^TestExplore$$' ./internal/explore -faults $(FAULTS) -opens 3

# Every fault at every boundary of every scenario; with CI=1 no more than make test has.
sweep:
	$(GO) test -race -timeout 4h -run '^TestSweep$$' -v ./scenarios/sweep $(SWEEP)
	$(GO) test -race -timeout 4h -run '^TestSweepPostgres$$' -v ./scenarios/sweep $(SWEEP_PG)

kill:
	$(GO) test -timeout 4h -run '^TestKill' ./cmd/pawl -kills $(KILLS)

# Rounds of zombies mostly wait, so many of them run at once.
duel:
	$(GO) test -timeout 1h -parallel 6 ./internal/duel -rounds 200 -zombies 50
