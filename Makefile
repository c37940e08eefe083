# SPDX-License-Identifier: Apache-2.0
# The front door: each target installs what it lacks (Debian 12, root or sudo), builds what it needs
# and does one thing. What is behind it: CMakePresets.json and scripts/.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := build

DEPS := scripts/install-deps.sh
CONFIGURE := cmake --log-level=WARNING --preset
BUILD := cmake --build --preset
DAEMON := src/local-path-provisioner
# LPP_BUILT=dev: it is built already, and may be in use.
BUILD_DEV := $(if $(filter dev,$(LPP_BUILT)),true,$(CONFIGURE) dev >/dev/null && $(BUILD) dev)
# Ninja's own line of progress on a terminal; else what fails, and a word that it may take a while.
QUIET := $(shell [ -t 2 ] || echo --quiet)
WAIT = if [ ! -e build/$(1)/$(DAEMON) ]; then echo 'building; the first time takes some minutes'; fi

.PHONY: help build demo demo-agents quota-demo test plain chaos soak mutate e2e bench fmt lint image load chart asan tsan tsa clean

help: ## Show this list
	@printf 'make TARGET\n\n'
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | \
	  while IFS=$$'\t' read -r target text; do printf '  %-12s %s\n' "$$target" "$$text"; done
	@printf '\nEach target first installs the Debian packages it lacks, with apt-get, as root or by sudo.\n'

build: ## Build the daemon as it is shipped: build/release/src/local-path-provisioner
	@$(DEPS) build
	@$(CONFIGURE) release >/dev/null
	@$(BUILD) release --target local-path-provisioner
	@echo "built: build/release/$(DAEMON)"

demo: ## Watch a claim become a directory and go again, on a cluster in one process (DEMO_KEEP=1 keeps it)
	@$(DEPS) build test demo
	@$(call WAIT,dev)
	@$(BUILD_DEV) --target local-path-provisioner lpp-demo -- $(QUIET)
	@build/dev/test/devcluster/lpp-demo --daemon build/dev/$(DAEMON)

demo-agents: ## Watch the same with an agent on each node instead of helper pods, and how long it takes
	@$(DEPS) build test demo
	@$(call WAIT,dev)
	@$(BUILD_DEV) --target local-path-provisioner lpp-demo -- $(QUIET)
	@build/dev/test/devcluster/lpp-demo --agents --daemon build/dev/$(DAEMON)

quota-demo: ## Watch dd stop at the size of a claim, and the claim grow, on an XFS of a kernel in a process
	@$(DEPS) build test demo
	@$(DEPS) quota || { echo 'quota-demo: cannot be shown here, see above'; exit 1; }
	@$(call WAIT,dev)
	@$(BUILD_DEV) --target local-path-provisioner lpp-demo -- $(QUIET)
	@test/quota/demo.sh build/dev/test/devcluster/lpp-demo build/dev/$(DAEMON)

test: ## Run the unit and integration tests, those of the chart where Go, of the alerts where promtool can be had
	@$(DEPS) build test demo
	@$(DEPS) quota || echo 'quota: cannot be tested here, see above'
	@failed=0; \
	scripts/run-tests.sh dev $(CTEST_FLAGS) || failed=1; \
	for part in chart monitoring; do \
	  code=0; test/$$part/run.sh || code=$$?; \
	  if [ $$code = 0 ]; then continue; fi; \
	  if [ $$code != 3 ] || [ "$${CI:-}" = true ]; then failed=1; else echo "$$part: skipped, see above"; fi; \
	done; \
	exit $$failed

plain: ## Run the demo and the tests of containers where no sandbox can be made (PLACE=container, ...)
	@$(DEPS) build test demo
	@$(BUILD_DEV) -- --quiet
	@test/plain/run.sh $(PLACE) || { \
	  code=$$?; \
	  if [ $$code != 3 ] || [ "$${CI:-}" = true ]; then exit $$code; fi; \
	  echo 'plain: skipped, see above'; }

chaos: ## Run the daemon under random faults for CHAOS_SECONDS (600), half of it with agents (SEED, AGENTS=yes|no)
	@$(DEPS) build test demo
	@$(BUILD_DEV) --target local-path-provisioner lpp-chaos -- --quiet
	@for agents in $(or $(AGENTS),no yes); do \
	  build/dev/test/chaos/lpp-chaos --daemon build/dev/$(DAEMON) $(if $(SEED),--seed $(SEED)) \
	    --seconds $$(($(or $(CHAOS_SECONDS),600) / $(words $(or $(AGENTS),no yes)))) \
	    $$(if [ $$agents = yes ]; then echo --agents; fi); \
	done

soak: ## Let claims come and go for SOAK_SECONDS (1800); fails unless memory and descriptors stay level
	@$(DEPS) build test demo
	@$(CONFIGURE) release >/dev/null
	@$(BUILD) release --target local-path-provisioner lpp-soak -- --quiet
	@LPP_BUILD_DIR=build/release test/soak/run.sh

mutate: ## Break each promise, one by one: a test must turn red (ONLY="node/ lease": some of them)
	@$(DEPS) build test
	@$(DEPS) quota || echo 'quota: cannot be tested here, see above'
	@test/mutants/run.sh $(ONLY)

e2e: ## Run the end-to-end tests on a real control plane, and a real node where the machine can
	@$(DEPS) build test
	@$(BUILD_DEV) -- --quiet
	@LPP_BUILD_DIR="$(CURDIR)/build/dev" test/e2e/run.sh || { \
	  code=$$?; \
	  if [ $$code != 3 ] || [ "$${CI:-}" = true ]; then exit $$code; fi; \
	  echo 'e2e: skipped, see above'; }

bench: ## Measure the daemon against the floor, and PEER_BIN if set (BENCH_FLAGS="--full", a case, ...)
	@$(DEPS) build test bench
	@$(CONFIGURE) release >/dev/null
	@$(BUILD) release --target local-path-provisioner lpp-hollow-kubelet lpp-bench -- --quiet
	@LPP_BUILD_DIR="$(CURDIR)/build/release" test/bench/run.sh $(BENCH_FLAGS)

fmt: ## Bring the C++ files into the form of .clang-format
	@$(DEPS) lint
	@scripts/format.sh

lint: ## Check form, rules, shell scripts, clang-tidy and clang's thread-safety analysis
	@$(DEPS) build test lint
	@scripts/lint.sh

image: ## Build the container image with docker or buildah (IMAGE=name:tag, BASE=local without a registry)
	@IMAGE="$(IMAGE)" BASE="$(BASE)" PLATFORM="$(PLATFORM)" SOURCE="$(SOURCE)" scripts/image.sh

load: image ## Build the image and put it into a cluster of this machine (TO=kind, k3d or k3s; CLUSTER=name)
	@IMAGE="$(IMAGE)" scripts/load-image.sh "$(TO)" "$(CLUSTER)"

chart: ## Pack the Helm chart: build/local-path-provisioner-<version>.tgz
	@SOURCE="$(SOURCE)" scripts/chart.sh

asan: ## Run the tests under the address, leak and undefined-behaviour sanitizers
	@$(DEPS) build test demo sanitizers
	@scripts/run-tests.sh asan $(CTEST_FLAGS)

tsan: ## Run the tests under the thread sanitizer
	@$(DEPS) build test demo
	@scripts/run-tests.sh tsan

tsa: ## Compile each file by itself, which shows that it includes what it uses, with thread-safety analysis
	@$(DEPS) build test lint
	@$(CONFIGURE) tsa >/dev/null
	@$(BUILD) tsa -- --quiet

clean: ## Remove everything that was built
	rm -rf build
