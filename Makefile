# `make help` lists the targets. Tools are pinned here and installed to bin/tools.
GOLANGCI_VERSION := v2.15.0
GOFUMPT_VERSION  := v0.12.0
TOOLS            := $(CURDIR)/bin/tools
PROGRAMS         := ./gateway ./simulator ./scenarios ./chaos ./reports
NAME             ?= dual-enterprise-200
FUZZTIME         ?= 10s

export GOFLAGS := -buildvcs=false

.DEFAULT_GOAL := help
.PHONY: help setup build failpoint test test-full race fuzz lint fmt bench mutations scenario images clean

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install what a fresh machine lacks (PostgreSQL, Redis), or say exactly what to install
	@sh build/setup.sh

build: ## build the five programs into bin/
	@mkdir -p bin
	go build -o bin/ $(PROGRAMS)

failpoint: ## bin/gateway-failpoint: the gateway that can be killed at named points
	@mkdir -p bin
	go build -tags failpoint -o bin/gateway-failpoint ./gateway

test: setup ## every test against real PostgreSQL and Redis, under 10 minutes
	go test -count=1 -timeout 9m ./...

test-full: build lint race ## everything: build, lint and all tests under the race detector

race: setup ## the tests under the race detector
	go test -race -timeout 25m ./...

fuzz: ## every fuzz target for FUZZTIME each
	@sh build/fuzz.sh $(FUZZTIME)

lint: $(TOOLS)/golangci-lint ## golangci-lint with the project's rules
	$(TOOLS)/golangci-lint run ./...

fmt: $(TOOLS)/gofumpt ## format the tree
	$(TOOLS)/gofumpt -w $$(git ls-files '*.go')

mutations: setup ## take each guard of money and sending away, and see its test fail
	go test -count=1 -tags mutations -run '^TestMutations$$' -timeout 60m -v ./gateway/internal/settlement

bench: setup ## codec, barrier and chain benchmarks
	go test -run '^$$' -bench . -benchmem ./...

scenario: setup build $(if $(filter fault-failpoint-%,$(NAME)),failpoint) ## make scenario NAME=dual-enterprise-200: run a scenario against the real gateway binary
	@bin/scenarios run $(NAME)

images: ## local PostgreSQL and Redis images from Debian packages, for machines without an image registry
	@sh build/images.sh

clean: ## remove what builds and runs left
	rm -rf bin runs

$(TOOLS)/golangci-lint:
	GOBIN=$(TOOLS) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)

$(TOOLS)/gofumpt:
	GOBIN=$(TOOLS) go install mvdan.cc/gofumpt@$(GOFUMPT_VERSION)
