GO       ?= go
DEMO_DIR ?= build/town
FUZZTIME ?= 10s
FUZZCOVER ?= -fuzz .
SEED     ?= 1
LIVES    ?= 20000
KILLS    ?= 10000
PLACES   ?= 10000
SIMULATIONS := ^TestSimulation|^TestNothingIsDoneTwice|^TestProgramsActOnWhole
ATTEMPTS ?= 2500
LISTS    ?= $(wildcard tools/mutants/*.txt)
LINTER   := bin/golangci-lint
VULNDB   ?= https://vuln.go.dev

# What is released is built without C, and says in a panic where it was all the same
# without the symbols for debuggers.
RELEASE   := CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w'
PLATFORMS ?= linux/amd64 linux/arm64 darwin/arm64

.DEFAULT_GOAL := help
.PHONY: help agents docs build demo demo-postgres quick test test-module test-tools race nightly test-recordings lint golangci fmt fuzz sim attack twice kill copies torture-postgres test-postgres newest-postgres mutants gas bench bench-long bench-postgres cover check check-fast vet platforms tidy vuln clean vendor page pictures bin/bench bin/peers peers check-peers demo-machines torture-nodes many-worlds

help: ## print the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/worldctl
	$(RELEASE) -o bin/worldctl ./cmd/worldctl

demo: build ## create a town under DEMO_DIR, run it until idle, look at it, verify it
	rm -rf "$(DEMO_DIR)"
	@mkdir -p "$(dir $(DEMO_DIR))"
	bin/worldctl init "$(DEMO_DIR)" --template town
	bin/worldctl -w "$(DEMO_DIR)" send - < "$(DEMO_DIR)/events.jsonl"
	bin/worldctl -w "$(DEMO_DIR)" run --until-idle
	bin/worldctl -w "$(DEMO_DIR)" cell list
	bin/worldctl -w "$(DEMO_DIR)" timeline person/ada
	bin/worldctl -w "$(DEMO_DIR)" verify
	@echo
	@echo "The town is in $(DEMO_DIR). Go on with:"
	@echo "  bin/worldctl -w $(DEMO_DIR) cell show person/ada    what Ada knows"
	@echo "  bin/worldctl -w $(DEMO_DIR) receipt list            what was done outside, and its proof"
	@echo "  bin/worldctl -w $(DEMO_DIR) why 93                  how Ada came to answer: record 93 and its causes"
	@echo "  bin/worldctl -w $(DEMO_DIR) replay                  compute it all again, without I/O"
	@echo "  bin/worldctl ui $(DEMO_DIR)                         look at it in a browser"

# What tests build is built alike, so by GOFLAGS. make check vets all.
TEST := CGO_ENABLED=0 GOFLAGS="$$GOFLAGS -trimpath -vet=off" $(GO) test
CHANGED  = $(shell { git diff --name-only HEAD; git diff --name-only @{upstream}...; git ls-files -o --exclude-standard; } 2>/dev/null | grep '[.]go$$' | grep -v '^tools/' | xargs -r -n1 dirname | sort -u | sed 's|^|./|')

quick: ## look over what was changed, in a minute: vet, the house rules, the tests of these packages
	$(GO) vet ./...
	$(TEST) -timeout 5m ./internal/lint $(CHANGED)

# Many tests wait, for disks, clocks and processes: so four packages at once, and four tests of worldctl, whose tests
# take longest and so begin first.
MANY := -p 4 -parallel 4 -shuffle=on

test: test-module test-tools ## run all tests in random order

test-module:
	$(TEST) $(MANY) -timeout 90m ./worldctl ./...
	@test -d ../shared/data || echo "SKIPPED: tests that need the recordings of ../shared/data, which are not here"

race: ## run the tests with the race detector, which takes several times as long
	$(GO) test -race -vet=off $(MANY) -timeout 240m ./worldctl ./...

test-tools: # the browser waits most of its time; make nightly has SQLite, which is C, too
	$(TEST) -C tools/bench -shuffle=on ./... & bench=$$!; \
		$(TEST) -C tools/browser -shuffle=on ./... && wait $$bench

nightly: ## what takes hours: make check, the race detector on all tests, random lives, kills, damage, attacks, fuzzing led by coverage
	$(MAKE) check
	NIGHTLY=1 $(MAKE) race
	$(GO) test -C tools/bench -vet=off ./...
	$(MAKE) platforms sim twice kill copies attack test-postgres mutants
	$(MAKE) fuzz FUZZTIME=2m

test-recordings: ## run the tests that run on recordings, which make test does as well
	$(TEST) -shuffle=on -timeout 25m -run 'Airline|Ville|Recording' \
		$$(grep -rl --include='*_test.go' 'worldkernel/internal/recording"' . | xargs -n1 dirname | sort -u)

$(LINTER): tools/go.mod tools/go.sum
	$(GO) build -C tools -o ../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

demo-postgres: build ## the same town in a store on a PostgreSQL that it starts, its owner killed on the way
	tools/demo-postgres

lint: golangci ## run golangci-lint (built once, from tools/go.mod) and the house rules
	$(GO) test -count=1 ./internal/lint

golangci: $(LINTER)
	$(LINTER) run
	cd tools/bench && ../../$(LINTER) run
	cd tools/browser && ../../$(LINTER) run

fmt: $(LINTER) ## format all Go files
	$(LINTER) fmt

# Without FUZZCOVER mutations are not led by what they reach, and nothing is compiled anew for it.
fuzz: ## run each fuzz target for FUZZTIME
	@mkdir -p build; for dir in $$(grep -rlE --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		$(TEST) -ldflags='-s -w' -c $(FUZZCOVER) -o build/fuzz.test "$$dir" || exit 1; \
		for target in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]*' "$$dir"/*_test.go | sed 's/func //'); do \
			echo "$$target in $$dir"; \
			(cd "$$dir" && "$(CURDIR)/build/fuzz.test" -test.run '^$$' -test.fuzz "^$$target\$$" -test.fuzztime $(FUZZTIME) \
				-test.fuzzminimizetime 1x -test.fuzzcachedir "$$($(GO) env GOCACHE)/fuzz/$$dir") || exit 1; \
		done; \
	done

sim: ## run the simulations from SEED, and say how often each fault struck
	@mkdir -p build
	SEED=$(SEED) LIVES=$${SIM_RUNS:-5000} $(GO) test -count=1 -timeout 60m -v -run '$(SIMULATIONS)' ./world/... ./worldctl > build/sim.log; code=$$?; \
		grep -v '^=== RUN' build/sim.log | grep -v '^ *[0-9]*  '; \
		awk '$$1 ~ /^[0-9]+$$/ && /^ +[0-9]+  / {n = $$1; $$1 = ""; all[$$0] += n} END {for (name in all) printf "%9d %s\n", all[name], name}' build/sim.log | sort -k2; \
		exit $$code

attack: ## make ATTEMPTS attempts of each class from SEED on at what must hold against those who mean harm
	$(GO) run -C tools ./attack -seed $(SEED) -attempts $(ATTEMPTS)

twice: ## live LIVES random lives from SEED on, and look for what is done twice
	SEED=$(SEED) LIVES=$(LIVES) $(GO) test -count=1 -timeout 60m -v ./world/worldtest/twice

kill: build ## kill bin/worldctl with SIGKILL, KILLS times at random moments, in lives from SEED on
	WORLDCTL=$(CURDIR)/bin/worldctl SEED=$(SEED) KILLS=$(KILLS) $(GO) test -count=1 -timeout 300m -v ./worldctl/kill

copies: ## damage the copy of a world whose journal lies in a log at PLACES places from SEED on, and see that it is the same world
	SEED=$(SEED) PLACES=$(PLACES) $(GO) test -count=1 -timeout 60m -v -run TestDamagedCopyIsTheSameWorld ./journal/store

test-postgres: ## run the tests of worlds, of the API, of workers and the scripts of the command line again on a PostgreSQL that they start; RUN and SCRIPTS name some
	WORLDKERNEL_TEST_LOG=postgres $(TEST) -count=1 -timeout 25m -run '$(RUN)' ./world/local ./serve/api ./serve/worker
	WORLDKERNEL_TEST_LOG=postgres $(TEST) -count=1 -timeout 25m -run 'TestScripts/$(SCRIPTS)' ./worldctl

newest-postgres: ## run what is asked of PostgreSQL on the newest that npm ships: laws, roles, refusals, takeovers, faults, standbys, backups, moves, nodes
	tools/newest-postgres $(GO) test -count=1 -timeout 25m ./journal/pglog
	tools/newest-postgres $(GO) test -count=1 -timeout 25m -run 'Postgres|KilledMoves' ./host ./world/local
	tools/newest-postgres $(GO) test -count=1 -timeout 25m ./serve/node ./serve/shared
	tools/newest-postgres $(GO) test -count=1 -timeout 25m -run 'TestScripts/store|RolesOfAStore|WhatWasRedacted' ./worldctl

demo-machines: build ## two nodes, a worker, a primary and its synchronous standby, of which a node and the primary are killed
	tools/demo-machines

many-worlds: ## have two nodes own 100 busy worlds of 100,000 in one database
	WORLDS=$${WORLDS:-100000} BUSY=$${BUSY:-100} $(GO) test -count=1 -timeout 30m -v -run TestManyWorldsAreRows ./serve/node

agents: ## kill the real Claude Code beside worlds, and see that no call is paid twice; and that it would be without the record
	tools/agents

torture-nodes: ## kill three nodes of 1,000 worlds, stop them, cut them off; and see that without a fence something is done twice
	tools/torture-nodes

torture-postgres: ## have eight owners contend for a world on PostgreSQL: takeovers, effects, stopped processes, faults of the wire, killed backends, crashes, promotions; and kill what moves one there and back, forks and restores one there
	TAKEOVERS=$${TAKEOVERS:-5000} WIRE_FAULTS=$${WIRE_FAULTS:-2000} SESSIONS=$${SESSIONS:-200} KILLS=$${KILLS:-50} CRASHES=$${CRASHES:-20} PROMOTIONS=$${PROMOTIONS:-20} \
		INIT_STEP=1 $(GO) test -count=1 -timeout 60m -v -run 'Contend|WithAPrimary|LaggingStandby|Interrupted' ./journal/pglog
	SIM_RUNS=$${SIM_RUNS:-100} $(GO) test -count=1 -timeout 60m -v -run TakeoversOnPostgres ./host
	MOVES=$${MOVES:-200} $(GO) test -count=1 -timeout 60m -v -run KilledMoves ./world/local
	STRIKES=$${STRIKES:-all} $(GO) test -count=1 -timeout 60m -v -run KilledForks ./serve/shared
	SIM_RUNS=$${SIM_RUNS:-100} $(GO) test -count=1 -timeout 60m -v -run JournalsOnPostgres ./world/worldtest
	WORLDKERNEL_TEST_LOG=postgres $(GO) test -count=1 -timeout 60m -v -run KilledAnywhere ./worldctl
	PLACES=$${COPIES:-10000} SEED=$(SEED) $(GO) test -count=1 -timeout 120m -v -run TestDamagedCopyIsTheSameWorld ./journal/store

mutants: ## break what matters in LISTS, one place at a time, and see that the test beside it notices
	$(GO) run -C tools ./mutants $(LISTS)

bin/bench:
	$(GO) build -C tools/bench -trimpath -o ../../$@ .

bin/peers:
	$(GO) build -C tools/peers -trimpath -o ../../$@ .

peers: bin/bench bin/peers ## have go-workflows, DBOS and Temporal perform the same effects, beside a world
	bin/bench peers

check-peers: $(LINTER) ## what check and test do, of tools/peers, which they leave out
	$(GO) -C tools/peers mod tidy -diff
	$(GO) vet -C tools/peers ./...
	cd tools/peers && ../../$(LINTER) run --timeout 30m
	$(GO) test -C tools/peers -shuffle=on -vet=off ./...

sir: ## make RUNS runs of an epidemic, and see that 50 pairs say what they say
	WORLDKERNEL_RUNS=$${RUNS:-1000} $(GO) test -count=1 -timeout 60m -v -run TestPairsOfFiftySeeds ./examples

gas: ## look for Starlark programs that take more than 0.2 s of CPU at the default limit of gas
	WORLDKERNEL_GAS= $(GO) test -count=1 -timeout 30m -v -run TestSearchForExpensivePrograms ./reducer/star

vendor: ## fetch what the page has from others anew, see serve/ui/vendor.sh
	serve/ui/vendor.sh

page: ## make serve/ui/built/app.js of the modules in serve/ui/page, after a change of one
	$(GO) run -C tools ./page

pictures: ## make the pictures of docs/ui.md and the plots of the examples, with chromium
	@mkdir -p docs/pictures
	DOCS=$(CURDIR)/docs/pictures $(GO) test -C tools/browser -count=1 -run '^TestPictures$$' .
	EXAMPLES=$(CURDIR)/examples $(GO) test -C tools/browser -count=1 -run '^TestPicturesOfModels$$' .

bench: bin/bench ## measure kernel, effects, shadows, verification, the API and models beside what they are compared with, then the packages
	for what in kernel effects shadow verify submit sweep snapshot moment; do bin/bench $$what || exit 1; done
	$(GO) test -run '^$$' -bench . -benchmem ./...

bench-long: bin/bench ## measure what an event costs in a world of 10 million records, an effect after a million, and opening them
	bin/bench long
	bin/bench intents

bench-postgres: bin/bench ## measure worlds on a PostgreSQL that it starts, beside the same in a directory and bare statements
	bin/bench postgres

cover: ## print the coverage of all tests
	@mkdir -p build
	$(GO) test -coverpkg=./... -coverprofile=build/cover.out ./...
	$(GO) tool cover -func=build/cover.out | tail -1

docs: ## write docs/cli.md from the commands
	$(GO) test ./worldctl -run CLIDoc -update

check: check-fast golangci ## everything but the tests that a commit must pass

check-fast: vet # check without golangci-lint, which has to be built first
	$(GO) test -vet=off -count=1 -timeout 5m ./internal/lint

# What is looked over is compiled as what is tested: without C.
quick vet golangci lint check-fast: export CGO_ENABLED := 0

vet:
	@files=$$(gofmt -l .); test -z "$$files" || { echo "not formatted, run make fmt:"; echo "$$files"; exit 1; }
	$(GO) vet ./...
	$(GO) test -C tools -vet=all ./mutants ./attack ./page

platforms: ## build without C for PLATFORMS, and vet for the last of them
	@for p in $(PLATFORMS); do echo "$$p" && \
		CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build -trimpath ./... || exit 1; \
	done; \
	CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) vet -trimpath ./...

tidy: ## see that go.mod and go.sum of all modules hold what is needed, and no more
	$(GO) mod tidy -diff
	$(GO) -C tools/bench mod tidy -diff
	$(GO) -C tools/browser mod tidy -diff
	$(GO) -C tools mod tidy -diff

bin/govulncheck: tools/go.mod tools/go.sum
	$(GO) build -C tools -o ../$@ golang.org/x/vuln/cmd/govulncheck

vuln: ## look for known vulnerabilities in VULNDB, if it can be reached
	@skipped='SKIPPED: nothing was looked for, $(VULNDB) cannot be reached'; \
	if command -v curl >/dev/null && ! curl -so /dev/null "$(VULNDB)/index/modules.json.gz"; then echo "$$skipped"; exit 0; fi; \
	$(MAKE) bin/govulncheck || exit 1; \
	said=$$(CGO_ENABLED=0 bin/govulncheck -db "$(VULNDB)" ./... 2>&1); code=$$?; echo "$$said"; case "$$said" in \
		*"fetching vulnerabilities:"*) echo "$$skipped" ;; \
		*) exit $$code ;; \
	esac

clean: ## remove what the build and the demo made
	rm -rf bin build
