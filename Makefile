# TriageMQ. "make" builds, "make test" is the one test command.

GO       ?= go
FUZZTIME ?= 10s
SEEDS    ?= 200
BENCH    ?= .

.PHONY: build demo demo-homesecurity test check lint format fuzz sim bench api

build: ## the binary, into bin/
	$(GO) build -o bin/ ./cmd/...

demo: ## the product at work, in a minute: the priority queue pattern, a queue that sorts, kill -9, an event hub
	$(GO) run ./examples/demo

demo-homesecurity: ## 100,000 homes, an event hub, instances that share it, and pages to watch; until Ctrl-C
	$(GO) build -o bin/ ./examples/homesecurity && bin/homesecurity

test: format ## everything: format, vet, unit tests with the race detector, the suites in test/
	$(GO) vet ./...
	./test/run.sh

check: lint ## what to run before each commit: no sockets, no other languages
	$(GO) test -race -shuffle=on -timeout 10m ./...
	$(GO) test -tags invariants -timeout 10m ./internal/...

lint: format ## golangci-lint if it is there, else the part of it that Go brings along
	$(GO) vet ./...
	@if command -v golangci-lint >/dev/null; then golangci-lint run ./...; \
	else echo 'golangci-lint is not installed: go vet, gofmt and archtest only'; fi
	$(GO) test ./internal/archtest

format:
	@unformatted=$$(find . -name '*.go' -not -path '*/node_modules/*' -not -path '*/testdata/*' | xargs gofmt -l); \
	if [ -n "$$unformatted" ]; then echo "gofmt these:" $$unformatted; exit 1; fi

fuzz: ## every fuzz test for FUZZTIME, one after another
	./test/fuzz.sh $(FUZZTIME)

sim: ## the whole core from SEEDS seeds, and one queue from some more
	$(GO) test ./internal/sim -run "Sim|Front" -timeout 60m -seeds $(SEEDS)
	$(GO) test ./internal/sim/streams -timeout 60m -seeds $(SEEDS)
	$(GO) test ./internal/sim/groups -timeout 60m -seeds $(SEEDS)
	$(GO) test ./internal/queue -run Random -timeout 60m -seeds 20

bench: ## the benchmarks that match BENCH
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./...

api: ## rewrite api/*.txt, the exported names of the public packages
	$(GO) test ./api -update
