# `make` alone prints the targets: a `## ` after a target is its help line.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

MODULE     := github.com/jobweaver/jobweaver
FUNCTIONS  := $(notdir $(patsubst %/cmd,%,$(wildcard functions/*/cmd)))
BINARIES   := $(addprefix bin/,$(FUNCTIONS)) bin/jobweaver
VERSION    ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT     ?= $(shell git rev-parse HEAD 2>/dev/null)
DATE       ?= $(shell TZ=UTC git log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ 2>/dev/null)
BUILD      := $(MODULE)/shared/funchost
GO_BUILD   := go build -ldflags '-s -w -X $(BUILD).Version=$(VERSION) -X $(BUILD).Commit=$(COMMIT) -X $(BUILD).Date=$(DATE)'

# The same for all that is done here, and without paths, so that a package is compiled once for all of it, and for all
# clones on a machine. Without MessagePack, which gin brings and nothing here speaks, the gateway is 6 MB smaller. Nothing
# that is built here keeps what a debugger needs (-s): the compiler makes none of it, and the first build takes 15 % less.
export GOFLAGS += -trimpath -tags=nomsgpack -gcflags=all=-dwarf=false
export CGO_ENABLED = 0

# One PostgreSQL for a whole test run; every test has a database of its own on it.
WITH_POSTGRES := go run ./shared/pgtest/withpostgres
WITH_KAFKA    := go run ./shared/kafkatest/withkafka
# Each tool has a module of its own, so that a linter's library cannot change the version of one that we ship.
GOLANGCI      := go tool -modfile=$(CURDIR)/.ci/tools/golangci-lint/go.mod golangci-lint
SQLC          := go tool -modfile=.ci/tools/sqlc/go.mod sqlc
ACTIONLINT    := go tool -modfile=.ci/tools/actionlint/go.mod actionlint
GORELEASER    := go tool -modfile=.ci/tools/goreleaser/go.mod goreleaser
GOVULNCHECK   := go tool -modfile=$(CURDIR)/.ci/tools/govulncheck/go.mod govulncheck

# `make lint` vets the tests, and a test binary needs no symbols: without them it links in two thirds of the time. Tests
# wait more than they compute, so more packages and more tests of a package run at once than there are cores; under the
# race detector they compute.
GO_TEST    := go test -vet=off -ldflags=-s
CORES      := $(shell getconf _NPROCESSORS_ONLN)
TEST_FLAGS := -p $(shell echo $$(($(CORES) + 2))) -parallel $(shell echo $$(($(CORES) + 1)))
RACE_FLAGS := -p $(shell echo $$(($(CORES) + 1))) -race -short -timeout 20m

# The packages that take longest begin first, or the last of them would be waited for alone. Those that wait most are
# among the first, so that others compute beside them.
LONGEST := ./local/suites/knative ./functions/runjob ./functions/gateway ./shared/schedulerdb ./local/dev ./local/jobweaver \
	./shared/kafkaevent ./functions/pull ./shared/workerdb ./shared/funchost ./shared/apidb/joblist ./local/suites/shuffle ./shared/pgpool \
	./migrations ./shared/apidb ./local/model/protocol ./local/examples ./shared/apidb/jobstore ./functions/notify

# Whole installations, whose processes are killed, rolled and looked at: a target of their own.
SERVES := ./local/serve ./local/doctor

# Packages with nothing for the race detector: pure ones, which start no goroutine and change no variable of a package,
# those whose work is done by SQL or by other processes and that share nothing in memory, and the shuffle test, which
# does one thing at a time on purpose.
# The command line's is one process's that ends. In the others, a test with nothing to race is skipped by -short.
NOT_RACED := functions migrations infra/laptop/localpostgres infra/kubernetes local/suites/attacks local/examples local/jobweaver local/packages \
	local/suites/interplay local/suites/shuffle local/load/figures local/load/proctree local/model/locking local/model/protocol \
	$(addprefix shared/apidb/,alertstore auditstore batchstore callbackstore deliverystore joblist keystore logstore operationstore \
	rejectedstore statstore statusstore typestore waitstore workerstore) shared/apibody shared/apierror shared/apikey shared/cronspec shared/dispatch shared/funchost/envsettings shared/httpevent \
	shared/jobstate shared/payloadschema shared/retrypolicy
RACED = $(foreach name,$(NOT_RACED),$(if $(wildcard $(name)/*_test.go),,$(error NOT_RACED: no tests in $(name))))$(filter-out $(addprefix $(MODULE)/,$(NOT_RACED)),$(shell go list ./... $(CLIENT_GO)))

# The packages whose tests use a broker; of the gateway's, which has one publish buffer for all events, only those few.
KAFKA_SUITES = $(filter-out ./functions/gateway,$(shell grep -rl --include='*_test.go' '"$(MODULE)/shared/kafkatest"' shared functions | xargs -r -n1 dirname | sort -u | sed 's,^,./,'))
KAFKA_TESTS  = $(shell grep -lF kafkatest.Brokers functions/gateway/*_test.go | xargs -r sed -nE 's/^func (Test[A-Za-z]+).*/\1/p' | paste -sd '|')

# What is in the tree now, to see whether `make generate` changes it.
SNAPSHOT := git ls-files -z --cached --others --exclude-standard | xargs -0 sha1sum 2>/dev/null || true

# Modules of their own, whose libraries are no dependencies of ours.
MODULES := local/load/river local/load/plots local/load/peers local/examples/function-go .ci/manifests .ci/helm .ci/compose .ci/prose shared/client
# To analyse all that those in .ci bring in, Kubernetes among it, takes minutes: their own targets vet them.
LINTED  := $(filter-out .ci/%,$(MODULES))

# What the example functions in other languages need is kept beside them.
PYTHON_READY     := $(patsubst %,local/examples/%/.venv/ready,function-python outbox-python function-fastapi function-django)
CONTRACT_READY   := .ci/contract/python/.venv/ready
DOCS_READY       := .ci/docs/.venv/ready
JAVASCRIPT_READY := $(patsubst %,local/examples/%/node_modules/ready,function-javascript outbox-typescript function-express function-next)
JAVA_READY       := local/examples/outbox-java/target/lib/ready local/examples/function-spring/target/lib/ready
CLIENT_GO        := $(MODULE)/shared/client/...
CLIENT_TS        := clients/typescript
CLIENT_TS_READY  := $(CLIENT_TS)/node_modules/ready
CLIENT_PY        := clients/python
CLIENT_PY_READY  := $(CLIENT_PY)/.venv/ready
CONTRACT_LINT_READY := .ci/contract/lint/node_modules/ready
DASHBOARD        := functions/gateway/dashboard
DASHBOARD_READY  := $(DASHBOARD)/node_modules/ready

KILL_FOR  ?= 50s
KILL_SEED ?=
# Of make chaos; empty: eight minutes of faults, by a new seed.
export CHAOS_FOR CHAOS_SEED CHAOS_SERVE
# Of make interplay: how long new programs begin, the first seed (empty: a new one), seeds that come first, and a file
# with one program, which is run in place of all of them.
INTERPLAY_FOR     ?= 10m
INTERPLAY_SEED    ?=
INTERPLAY_SEEDS   ?=
INTERPLAY_PROGRAM ?=
FUZZ_FOR  ?= 2s
# The database of make vulnerabilities; file:///… names a copy on disk.
VULNDB    ?= https://vuln.go.dev

# What reads a job, an event, a callback, a cron expression or a cursor.
FUZZ_LONG_FOR ?= 10s
FUZZ_LONG     := shared/jobspec.FuzzDecode shared/apibody.FuzzDecodeCallback shared/httpevent.FuzzEvent \
	shared/kafkaevent.FuzzRecord shared/cronspec.FuzzNext shared/eventkeys.FuzzCheck functions/gateway/edge.FuzzQuery

.PHONY: help
help: ## print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1\t\2/' | \
		awk -F'\t' '{ printf "  make %-16s %s\n", $$1, $$2 }'

# Of jobweaver dev, such as ARGS=--port=18080.
ARGS ?=

# On a terminal the build and dev are jobs of their own, so that Ctrl-C reaches them and not make, which would report an
# error.
.PHONY: run
run: ## everything on this machine, with sample jobs, at http://localhost:8080; Ctrl-C stops it
	@case $$(ps -o stat= -p $$$$ 2>/dev/null) in *+*) set -m;; esac; \
	{ infra/compile $(GO_BUILD) -o bin/jobweaver ./local/jobweaver && bin/jobweaver dev --demo $(ARGS); } || \
	{ code=$$?; [[ $$code == 130 ]] || exit $$code; }

.PHONY: demo
demo: bin/jobweaver ## the same, but exits: 0 only if every sample job ended as it should
	bin/jobweaver dev --demo --exit $(ARGS)

.PHONY: build
build: $(BINARIES) ## bin/<function> for each function, and bin/jobweaver

# Go knows better than make what is up to date.
.PHONY: $(BINARIES)
bin/jobweaver:
	@infra/compile $(GO_BUILD) -o $@ ./local/jobweaver

$(addprefix bin/,$(FUNCTIONS)): bin/%:
	@infra/compile $(GO_BUILD) -o $@ ./functions/$*/cmd

# The image is named IMAGE:VERSION.
IMAGE ?= ghcr.io/jobweaver/jobweaver

# What the image holds, by the script that the Dockerfile runs.
.PHONY: image-root
image-root:
	@VERSION=$(VERSION) COMMIT=$(COMMIT) DATE=$(DATE) infra/image-root bin/image

.PHONY: image
image: ## the image, IMAGE:VERSION (needs Docker)
	docker build -f infra/Dockerfile --build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) --build-arg DATE=$(DATE) \
		--build-arg SOURCE_DATE_EPOCH=0 -t $(IMAGE):$(VERSION) .

# Of a published image.
PLATFORMS ?= linux/amd64,linux/arm64

.PHONY: image-push
image-push: ## the image of a release for all PLATFORMS, pushed to IMAGE:VERSION with its SBOM and provenance (needs Docker)
	docker buildx build -f infra/Dockerfile --platform $(PLATFORMS) --build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) \
		--build-arg DATE=$(DATE) --build-arg SOURCE_DATE_EPOCH=0 --sbom=true --provenance=true -t $(IMAGE):$(VERSION) --push .

.PHONY: release
release: ## draft the release of the tag that is checked out: archives, packages, SBOMs, cask (needs GITHUB_TOKEN, HOMEBREW_TAP_TOKEN)
	mkdir -p bin
	.ci/release-notes "$$(git describe --exact-match --tags --match 'v*' | sed 's/^v//')" > bin/release-notes.md
	$(GORELEASER) release --clean --release-notes=bin/release-notes.md

.PHONY: ko
ko: ## the image without Docker, by ko, pushed to IMAGE:VERSION
	SOURCE_DATE_EPOCH=0 VERSION=$(VERSION) COMMIT=$(COMMIT) DATE=$(DATE) KO_DOCKER_REPO=$(IMAGE) \
		ko build --bare --tags $(VERSION) ./local/jobweaver

.PHONY: migrate
migrate: ## bring the three databases on the server of DATABASE_URL up to date
	go run ./local/jobweaver migrate

.PHONY: test
test: ## the tests of all packages, on real PostgreSQL and the embedded broker
	$(WITH_POSTGRES) $(GO_TEST) $(TEST_FLAGS) $(LONGEST) $(filter-out $(SERVES:./%=$(MODULE)/%),$(shell go list ./...)) $(CLIENT_GO)

.PHONY: test-serve
test-serve: ## jobweaver serve and doctor: faults, a standby, poolers, installations beside each other
	$(WITH_POSTGRES) $(GO_TEST) $(SERVES)

.PHONY: test-race
test-race: export CGO_ENABLED = 1
test-race: ## the tests again, under the race detector: those of more than one goroutine
	$(WITH_POSTGRES) $(GO_TEST) $(RACE_FLAGS) $(filter-out $(addprefix ./,$(NOT_RACED)),$(LONGEST)) $(RACED)

.PHONY: test-apache
test-apache: ## the Kafka suites on a real Apache Kafka (needs Java 17 and Maven)
	$(WITH_POSTGRES) $(WITH_KAFKA) $(SHELL) -c '$(GO_TEST) -count=1 $(KAFKA_SUITES) && \
		$(GO_TEST) -count=1 -run "^($(KAFKA_TESTS))$$" ./functions/gateway'

.PHONY: test-kill
test-kill: ## processes killed at random for KILL_FOR (50s), or frozen, under orders and limits; KILL_SEED repeats a run
	$(GO_TEST) -count=1 -v -timeout 20m -parallel 5 ./local/suites/kill -kill.for=$(KILL_FOR) $(if $(KILL_SEED),-kill.seed=$(KILL_SEED))

.PHONY: interplay
interplay: ## random programs over all features, checked against the promises of the docs, for INTERPLAY_FOR (10m); INTERPLAY_SEED repeats them
	$(GO_TEST) -count=1 -v -timeout 0 ./local/suites/interplay -interplay.for=$(INTERPLAY_FOR) \
		$(if $(INTERPLAY_SEED),-interplay.seed=$(INTERPLAY_SEED)) $(if $(INTERPLAY_SEEDS),-interplay.seeds=$(INTERPLAY_SEEDS)) \
		$(if $(INTERPLAY_PROGRAM),-interplay.program=$(abspath $(INTERPLAY_PROGRAM)))

.PHONY: chaos
chaos: ## ten minutes of faults on three Apache Kafka brokers and a PostgreSQL with a standby; CHAOS_SEED repeats them (needs Debian)
	local/suites/chaos/needs
	go run ./local/suites/chaos

.PHONY: observability
observability: ## alert rules by promtool, and every query of every dashboard on a running installation (needs Debian's prometheus)
	promtool check config --syntax-only infra/prometheus/prometheus.yml
	promtool check rules infra/prometheus/rules.yml infra/prometheus/alerts.yml
	promtool test rules infra/prometheus/alerts_test.yml
	$(GO_TEST) -count=1 ./local/suites/observability -observability.run

.PHONY: test-restore
test-restore: ## servers that are backed up at work, lost and restored, to one moment and to different ones
	$(GO_TEST) -count=1 ./local/jobweaver/afterrestore -afterrestore.run

.PHONY: test-plans
test-plans: ## the plans of the scheduler's statements with 5,000,000 waiting jobs of 10,000 keys, without statistics and with
	$(GO_TEST) -count=1 -v -timeout 20m ./shared/schedulerdb -run TestPlansOfALargeBacklog -plans.jobs=5000000

.PHONY: test-memory
test-memory: ## a gateway with the memory of its container, attacked in every way that once took more
	$(GO_TEST) -count=1 -v ./functions/gateway -run TestAGatewayStaysWithinItsMemory -gateway.memory

.PHONY: test-upgrade
test-upgrade: ## the binaries of local/suites/upgrade/OLD_COMMIT beside today's, rolled there and back; probes of real processes
	$(GO_TEST) -count=1 -timeout 10m ./local/suites/upgrade -upgrade.run

.PHONY: test-examples
test-examples: $(PYTHON_READY) $(JAVASCRIPT_READY) $(JAVA_READY) ## the examples of all languages (needs Python 3.11, Node.js 20, Java 17 and Maven)
	cd local/examples/outbox-typescript && node_modules/.bin/tsc
	cd local/examples/function-next && NEXT_TELEMETRY_DISABLED=1 node_modules/.bin/next build
	cd local/examples/function-spring && javac -cp 'target/lib/*' -d target/classes src/main/java/example/*.java
	$(GO_TEST) -count=1 ./local/examples -examples.all

.PHONY: test-contract
test-contract: $(CONTRACT_READY) $(CONTRACT_LINT_READY) ## lint the contract, and use generated clients in Go and Python (needs Python 3.11 and Node.js 20)
	REDOCLY_TELEMETRY=off .ci/contract/lint/node_modules/.bin/redocly lint --config .ci/contract/lint/redocly.yaml \
		functions/gateway/openapi.yaml
	mkdir -p .ci/contract/api
	go tool -modfile=.ci/tools/oapi-codegen/go.mod oapi-codegen -generate types,client -package api \
		-o .ci/contract/api/api.go functions/gateway/openapi.yaml
	PATH=$(CURDIR)/$(<D)/bin:$$PATH openapi-python-client generate --path functions/gateway/openapi.yaml --meta none --overwrite \
		--output-path .ci/contract/python/jobweaver_client
	go mod tidy -C .ci/contract -diff
	go test -C .ci/contract -count=1 ./...

# What of the clients is made of the contract.
CLIENT_MADE := $(CLIENT_TS)/src/schema.gen.ts $(CLIENT_PY)/src/jobweaver/models.py $(CLIENT_PY)/src/jobweaver/parts.py

.PHONY: generate-clients
generate-clients: $(CLIENT_TS_READY) $(CLIENT_PY_READY) ## the TypeScript and Python clients' types, of the contract, and Python's calls without async (needs Python 3.11 and Node.js 20)
	cd $(CLIENT_TS) && npm run --silent generate
	cd $(CLIENT_PY) && .venv/bin/datamodel-codegen && .venv/bin/python synchronous.py

.PHONY: test-clients
test-clients: packages ## the clients in Go, TypeScript and Python: current, alone, as their pages install them, and on an installation (needs Python 3.11 and Node.js 20)
	@before=$$(mktemp); trap 'rm -f "$$before"' EXIT; sha1sum $(CLIENT_MADE) > "$$before"; \
	$(MAKE) --no-print-directory generate-clients; \
	sha1sum $(CLIENT_MADE) | diff "$$before" - || { echo 'stale: commit what make generate-clients wrote'; exit 1; }
	cd $(CLIENT_TS) && npm test --silent
	cd $(CLIENT_PY) && .venv/bin/ruff check && .venv/bin/ruff format --check && \
		.venv/bin/pip install --quiet --no-deps --force-reinstall $(CURDIR)/dist/*.whl && .venv/bin/mypy && .venv/bin/pytest -q
	$(GO_TEST) -count=1 ./local/suites/clients -clients.run

# What of the dashboard is made from something else: its types of the contract, and its build.
DASHBOARD_MADE := cd $(DASHBOARD) && find dist src/api/schema.gen.ts -type f | LC_ALL=C sort | xargs sha1sum

.PHONY: test-dashboard
test-dashboard: $(DASHBOARD_READY) bin/jobweaver ## the dashboard: types, unit tests, its build, and each page in a browser (needs Node.js 20 and Chromium)
	cd $(DASHBOARD) && npm run check && npm test
	@before=$$(mktemp); trap 'rm -f "$$before"' EXIT; ($(DASHBOARD_MADE)) > "$$before"; \
	(cd $(DASHBOARD) && npm run types && npm run build); \
	($(DASHBOARD_MADE)) | diff "$$before" - || { echo 'stale: commit what npm run types and npm run build wrote'; exit 1; }
	cd $(DASHBOARD) && npm run e2e

.PHONY: packages
packages: $(CLIENT_TS_READY) $(CLIENT_PY_READY) ## what the registries get, in dist/: the clients and the Helm chart (needs Python 3.11 and Node.js 20)
	mkdir -p dist
	go run ./local/packages dist
	cd $(CLIENT_TS) && npm pack --silent --pack-destination $(CURDIR)/dist
	cd $(CLIENT_PY) && .venv/bin/python -m build --wheel --no-isolation -o $(CURDIR)/dist . >/dev/null
	go run -C .ci/helm ./pack $(CURDIR)/dist

.PHONY: downloads
downloads: $(DOCS_READY) $(PYTHON_READY) $(CONTRACT_READY) $(CLIENT_PY_READY) $(JAVASCRIPT_READY) $(CONTRACT_LINT_READY) \
	$(DASHBOARD_READY) $(CLIENT_TS_READY) $(JAVA_READY) ## fetch what the other targets need of PyPI, npm and Maven

# The lists are complete (--no-deps), and a module is compiled when it is first imported, which most never are.
$(PYTHON_READY) $(CONTRACT_READY) $(DOCS_READY) $(CLIENT_PY_READY): %/.venv/ready: %/requirements.txt
	python3 -m venv --clear $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check --no-deps --no-compile --require-hashes -r $<
	@touch $@

$(JAVASCRIPT_READY) $(CONTRACT_LINT_READY) $(DASHBOARD_READY) $(CLIENT_TS_READY): %/node_modules/ready: %/package-lock.json
	cd $(<D) && npm ci --no-audit --no-fund --ignore-scripts
	@touch $@

$(JAVA_READY): %/target/lib/ready: %/pom.xml
	mvn -q -B -f $< dependency:copy-dependencies -DoutputDirectory=target/lib
	@touch $@

.PHONY: manifests
manifests: ## build what is in knative/ and the Helm chart, validate it as a cluster would, and hold it against the code
	go test -C .ci/helm -vet=all -count=1 ./...
	go test -C .ci/manifests -vet=all -count=1 ./... # what is checked lies outside the module, and Go would not see it change

.PHONY: test-compose
test-compose: image-root ## docker-compose.yml: held against the code, and started without Docker, on Apache Kafka (needs Java 17 and Maven)
	go test -C .ci/compose -vet=all -count=1 ./... -image.root=$(CURDIR)/bin/image/root

.PHONY: test-image
test-image: ## the image without Docker: built twice, looked into, and started (needs root, buildah and podman)
	.ci/image

.PHONY: test-release
test-release: ## what a release has, for linux/amd64: the archive, the packages and the SBOM, built and tried (needs dpkg-deb)
	.ci/release

.PHONY: bench
bench: ## every measurement beside River, an hour or two; writes docs/performance/
	mkdir -p docs/performance
	go run ./local/load bench --json docs/performance/results.json
	go run ./local/load plot

.PHONY: bench-quick
bench-quick: ## the guard for every change, 2 minutes: throughput against River, and latency
	@go run ./local/load bench --quick

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZ_FOR (2s), those that read what strangers send for FUZZ_LONG_FOR (10s); two at once
	@grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9]+' shared functions local | \
		sed -E 's,/[^/]+:func , ,' | sort | \
		awk -v long='$(FUZZ_LONG)' -v much=$(FUZZ_LONG_FOR) -v few=$(FUZZ_FOR) '\
			BEGIN { split(long, names, " "); for (i in names) wanted[names[i]] = 1 } \
			$$1 "." $$2 in wanted { print 0, $$0, much; delete wanted[$$1 "." $$2]; next } { print 1, $$0, few } \
			END { for (name in wanted) print 0, "no", name, "target" }' | \
		sort -s -n -k 1,1 | cut -d ' ' -f 2- | xargs -P 2 -n 3 .ci/fuzz

.PHONY: lint
lint: ## golangci-lint, with the import rule, the words of docs and code, and the workflows
	go test -C .ci/prose -vet=all ./...
	go run -C .ci/prose .
	$(ACTIONLINT)
	$(GOLANGCI) run ./...
	@for module in $(LINTED); do (set -x; cd $$module && $(GOLANGCI) run ./...); done

.PHONY: fmt
fmt: ## gofmt and goimports
	$(GOLANGCI) fmt ./...

.PHONY: generate
generate: ## write everything that is made from something else
	$(SQLC) compile
	rm -f shared/*/internal/gen/*.go
	$(SQLC) generate
	go generate ./...

.PHONY: check-generated
check-generated: ## fail when something generated is stale
	@before=$$(mktemp); trap 'rm -f "$$before"' EXIT; \
	{ $(SNAPSHOT); } > "$$before"; \
	$(MAKE) --no-print-directory generate; \
	{ $(SNAPSHOT); } | diff "$$before" - || { echo 'stale: commit what make generate wrote'; exit 1; }

.PHONY: docs
docs: $(DOCS_READY) ## docs/ as a site with a search, in dist/site; fails at a broken link (needs Python 3.11)
	NO_MKDOCS_2_WARNING=1 .ci/docs/.venv/bin/mkdocs build --config-file .ci/docs/mkdocs.yml

.PHONY: tidy-check
tidy-check: ## fail when go.mod or go.sum is not tidy
	go mod tidy -diff
	@for module in $(MODULES); do (set -x; go mod tidy -C $$module -diff); done

.PHONY: vulnerabilities
vulnerabilities: ## fail when code or a test calls a known vulnerability (needs vuln.go.dev; outside CI)
	@failed=; for module in . $(MODULES); do \
		(set -x; cd $$module && $(GOVULNCHECK) -db $(VULNDB) -test ./...) || failed+=" $$module"; \
	done; [[ ! $$failed ]] || { echo "govulncheck failed in:$$failed"; exit 1; }

.PHONY: clean
clean: ## remove what was built; the data of make run (.jobweaver/) stays
	rm -rf bin dist coverage*
