# Fairway's chores. `make help` lists them. Everything beyond Rust, Go and make is installed under .tools on demand.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
PROFILE ?= release
DATA ?= $(HOME)/.local/share/fairway
LISTEN ?= 127.0.0.1:6443
# Cargo calls the directory of the profile dev debug.
BUILT := $(TARGET_DIR)/$(if $(filter dev,$(PROFILE)),debug,$(PROFILE))/fairway

TOOLS := $(CURDIR)/.tools
export PATH := $(TOOLS)/bin:$(PATH)
PYTHON := $(TOOLS)/venv/bin/python

# One selection of packages and targets for every build of the tests, because Cargo unifies features over what is
# selected: another selection would compile the dependencies again. The binary and xtask come out of the same build.
# The benchmark is checked by clippy and built only by `make bench`.
TESTED := --workspace --exclude fairway-bench --all-targets
FAIRWAY := $(TARGET_DIR)/debug/fairway
XTASK := $(TARGET_DIR)/debug/xtask
BENCH := $(TARGET_DIR)/release/fairway-bench
# Charts that Fairway is measured with beside helm: the largest, the most used, and a small one.
MEASURED_CHARTS := kyverno,kube-prometheus-stack,argo-cd,cert-manager,external-secrets,crossplane,prometheus-node-exporter

# Cases from the originals' own test suites, and manifests that people wrote, live beside the repository; what needs them reports SKIPPED
# without them.
ifndef FAIRWAY_CONFORMANCE
ifneq ($(wildcard ../shared/conformance),)
export FAIRWAY_CONFORMANCE := $(realpath ../shared/conformance)
endif
endif

.PHONY: help
help: ## list the commands
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: web
web: ## build the web application, which the next build of Fairway takes in
	@if [[ -f web/package.json ]]; then \
	    scripts/tools.sh web && \
	    cd web && npm run build && \
	    touch ../crates/portal/web-server/src/unbuilt.html; \
	else \
	    echo 'web: there is no web/package.json; the portal will say that the application was not built'; \
	fi

.PHONY: web-check
web-check: ## types, lint and unit tests of the web application
	@scripts/tools.sh web
	cd web && npm run --silent check

.PHONY: up
up: web ## build Fairway and an image for machines, and start it in the background (DATA=DIR, LISTEN=ADDR:PORT, PROFILE=release|dev)
	@scripts/tools.sh cc
	@scripts/tools.sh qemu || echo 'make: there is no QEMU here, so no machine will run; everything else works' >&2
	cargo build --profile $(PROFILE) -p fairway
	@! command -v qemu-img >/dev/null || $(BUILT) image build tiny --data "$(DATA)" >/dev/null \
		|| echo 'make: the image tiny is not there; fairway image build tiny tries again' >&2
	@$(BUILT) up --detach --data "$(DATA)" --listen "$(LISTEN)"

.PHONY: down
down: ## stop the Fairway that `make up` started
	@$(BUILT) down --data "$(DATA)"

.PHONY: test
test: ## everything that must pass before a change lands
	@scripts/timed.sh 'tools' scripts/tools.sh cc deny python oidc catalog portal chromium kubectl qemu
	@scripts/timed.sh 'virtctl' scripts/peers.sh virtctl
	@scripts/timed.sh 'format' $(MAKE) --no-print-directory fmt-check
	@scripts/timed.sh 'lint' $(MAKE) --no-print-directory lint
	@scripts/timed.sh 'licences, bans, sources' $(MAKE) --no-print-directory deny
	@scripts/timed.sh 'web application' $(MAKE) --no-print-directory web
	@scripts/timed.sh 'web checks' $(MAKE) --no-print-directory web-check
	@scripts/timed.sh 'build' cargo build $(TESTED)
	@scripts/timed.sh 'tidy' $(XTASK) tidy
	@scripts/timed.sh 'unit and integration tests' cargo test --workspace --exclude fairway-bench --no-fail-fast
	@scripts/timed.sh 'apply conformance' $(XTASK) conformance apply
	@scripts/timed.sh 'kustomize conformance' $(XTASK) conformance kustomize
	@scripts/timed.sh 'helm conformance' $(XTASK) conformance helm
	@scripts/timed.sh 'random kustomizations and charts' $(MAKE) --no-print-directory renderers-diff
	@scripts/timed.sh 'real clients' $(MAKE) --no-print-directory clients
	@scripts/timed.sh 'wrong requests' $(MAKE) --no-print-directory wrong
	@scripts/timed.sh 'sync agent' $(MAKE) --no-print-directory syncagent
	@scripts/timed.sh 'gateway' $(MAKE) --no-print-directory gateway
	@scripts/timed.sh 'identity' $(MAKE) --no-print-directory identity
	@scripts/timed.sh 'catalog' $(MAKE) --no-print-directory catalog
	@scripts/timed.sh 'portal' $(MAKE) --no-print-directory portal
	@scripts/timed.sh 'why' $(MAKE) --no-print-directory why
	@scripts/timed.sh 'machines' $(MAKE) --no-print-directory machines
	@scripts/timed.sh 'the slice' $(MAKE) --no-print-directory slice
	@scripts/timed.sh 'the demo' $(MAKE) --no-print-directory golden-path-demo
	@scripts/timed.sh --summary

.PHONY: wrong
wrong: ## wrong requests: Fairway's answers against those of the real kube-apiserver, as recorded
	@scripts/tools.sh python kubectl
	$(PYTHON) tests/wrong/run.py --fairway $(FAIRWAY)

.PHONY: clients
clients: ## kubectl, helm and the Python client against the debug binary
	@scripts/tools.sh python kubectl
	$(PYTHON) -m unittest discover --quiet --start-directory tests/clients
	$(PYTHON) tests/clients/run.py --fairway $(FAIRWAY)
	$(PYTHON) tests/clients/run.py --fairway $(FAIRWAY) --workspace helm 30-apply 50-custom-resources 60-access python

.PHONY: syncagent
syncagent: ## the sync agent between two debug binaries (conformance: with the real kube-apiserver as service cluster)
	@scripts/tools.sh python kubectl
	$(PYTHON) tests/syncagent/run.py --fairway $(FAIRWAY)

.PHONY: machines
machines: ## real guests on the debug binary, through kubectl, virtctl and ssh: what is quick (NAMES=... for some)
	@scripts/tools.sh python kubectl qemu
	@scripts/peers.sh virtctl
	$(PYTHON) -m unittest discover --quiet --start-directory tests/machines
	$(PYTHON) tests/machines/run.py --fairway $(FAIRWAY) $(or $(NAMES),--quick)

.PHONY: test-machines
test-machines: ## all scenarios with real guests, a Debian among them; half an hour on two cores
	@scripts/tools.sh cc python kubectl qemu mmdebstrap netns nft
	@scripts/peers.sh virtctl
	cargo build $(TESTED)
	$(PYTHON) tests/machines/run.py --fairway $(FAIRWAY)

.PHONY: demo
demo: ## the golden path without hands: sign in, a machine, SSH, HTTP with a key, changes, a move, mail, the end; prints what it does
	@scripts/tools.sh cc python kubectl netns qemu
	cargo build $(TESTED)
	@$(MAKE) --no-print-directory golden-path-demo

.PHONY: golden-path-demo
golden-path-demo:
	@scripts/tools.sh python kubectl netns qemu
	$(PYTHON) tests/demo/run.py --fairway $(FAIRWAY) --tools $(TOOLS)

.PHONY: demo-slice
demo-slice: ## by hand-written manifests, in a workspace: git push, a machine, SSH and HTTP, changes, a gateway with keys, a guarded delete; prints what it does
	@scripts/tools.sh cc python kubectl qemu
	cargo build $(TESTED)
	@$(MAKE) --no-print-directory slice

.PHONY: slice
slice:
	@scripts/tools.sh python kubectl qemu
	$(PYTHON) tests/machines/slice.py --fairway $(FAIRWAY)

.PHONY: templates
templates: ## templates that others have written, below FROM=DIRECTORY, run on the debug binary and counted (tests/templates)
	@scripts/tools.sh python kubectl
	$(PYTHON) tests/templates/run.py --fairway $(FAIRWAY) --tools $(TOOLS) $(FROM) $(ARGS)

.PHONY: golden-path
golden-path: ## golden paths on the whole program: runs, dry runs, undoing, kill -9, quotas, rights, mail, Backstage's API
	@scripts/tools.sh python
	cargo test -p fairway --test golden_path

.PHONY: conformance
conformance: ## the client transcripts against the real kube-apiserver, then everything against Fairway, and Kubernetes' tests
	@scripts/tools.sh cc python kubectl
	@scripts/peers.sh etcd kube-apiserver kube-controller-manager
	cargo build --release -p fairway-bench
	cargo build $(TESTED)
	$(PYTHON) tests/clients/run.py --upstream "$(BENCH) peer --controllers"
	$(PYTHON) tests/clients/run.py --fairway $(FAIRWAY)
	$(PYTHON) tests/clients/run.py --fairway $(FAIRWAY) --workspace
	$(PYTHON) tests/wrong/run.py --upstream "$(BENCH) peer --controllers"
	$(PYTHON) tests/wrong/run.py --fairway $(FAIRWAY)
	$(PYTHON) tests/syncagent/run.py --fairway $(FAIRWAY) --upstream "$(BENCH) peer --controllers"
	$(PYTHON) tests/gitea/run.py --fairway $(FAIRWAY)
	scripts/engine-upstream.sh $(BENCH)
	$(XTASK) conformance apply
	$(XTASK) conformance kustomize
	@$(MAKE) --no-print-directory controllers
	@$(MAKE) --no-print-directory kubernetes-e2e

.PHONY: controllers
controllers: ## Crossplane, Argo CD, kube-controller-manager and client-go and OpenTofu against the debug binary; slow to build
	@scripts/tools.sh python kubectl redis
	@scripts/peers.sh kube-controller-manager crossplane argocd tofu terraform-provider-kubernetes
	cargo build $(TESTED)
	$(PYTHON) tests/controllers/run.py --fairway $(FAIRWAY) --report docs/conformance/controllers.md

.PHONY: gateway-conformance
gateway-conformance: ## upstream's conformance suite of Gateway API against the debug binary
	@scripts/tools.sh python netns
	@scripts/gateway-conformance.sh $(TOOLS)/gateway-conformance
	cargo build $(TESTED)
	$(PYTHON) tests/gateway-conformance/run.py --fairway $(FAIRWAY) --programs $(TOOLS)/gateway-conformance

.PHONY: catalog
catalog: ## Backstage's own client against the software catalog of the debug binary
	@scripts/tools.sh python catalog kubectl
	$(PYTHON) tests/catalog/run.py --fairway $(FAIRWAY) --tools $(TOOLS)

.PHONY: portal
portal: ## the portal in a real Chromium: every page, strangers' texts, refusals, what pages cost, the golden path (PARTS=...)
	@scripts/tools.sh python chromium portal kubectl qemu
	$(PYTHON) tests/portal/run.py --fairway $(FAIRWAY) --tools $(TOOLS) $(PARTS)

.PHONY: screens
screens: ## the film of the golden path in docs, taken anew by the scenario that goes it
	@scripts/tools.sh python chromium portal kubectl qemu
	$(PYTHON) tests/portal/run.py --fairway $(FAIRWAY) --tools $(TOOLS) --film docs

.PHONY: why
why: ## the catalogue of faults: `fairway why` names the broken link of each
	@scripts/tools.sh python kubectl qemu
	$(PYTHON) tests/why/run.py --fairway $(FAIRWAY) --tools $(TOOLS)

.PHONY: gateway
gateway: ## a service behind Route, Gateway, HTTPRoute and policies, with an OIDC provider; then the same to a real guest
	@scripts/tools.sh python oidc kubectl netns qemu
	$(PYTHON) tests/gateway/run.py --fairway $(FAIRWAY) --tools $(TOOLS)
	$(PYTHON) tests/gateway/run.py --fairway $(FAIRWAY) --tools $(TOOLS) --guest

.PHONY: gateway-soak
gateway-soak: ## requests of every kind for two minutes while the data plane's tables change all the time; not one may fail
	FAIRWAY_GATEWAY_SOAK=$(or $(SECONDS),120) cargo test -p fairway-gateway-proxy --test gateway under_reloads -- --nocapture

.PHONY: identity
identity: ## sign-in: openid-client, authlib, kubectl's plugin, git, and those who try to get in
	@scripts/tools.sh python oidc kubectl
	$(PYTHON) tests/identity/run.py --fairway $(FAIRWAY) --tools $(TOOLS)

.PHONY: keycloak
keycloak: ## people of a real Keycloak: kubectl and `fairway login` with an issuer that is not Fairway's own
	@scripts/tools.sh python kubectl keycloak
	cargo build $(TESTED)
	$(PYTHON) tests/identity/keycloak.py --fairway $(FAIRWAY) --tools $(TOOLS)

.PHONY: kubernetes-e2e
kubernetes-e2e: ## Kubernetes' own conformance tests against the debug binary (NAMES=... for some of them)
	@scripts/tools.sh python kubectl
	@scripts/peers.sh kubernetes-e2e
	cargo build $(TESTED)
	$(PYTHON) tests/kubernetes-e2e/run.py --fairway $(FAIRWAY) --program $(TOOLS)/bin/kubernetes-e2e $(NAMES)

.PHONY: charts
charts: ## real charts from Go modules, rendered by helm and by Fairway and compared byte for byte (ARGS=--only NAME)
	@scripts/tools.sh cc python
	cargo build --release -p fairway-gitops-helm --example template
	$(PYTHON) tests/helm/run.py --helm $(TOOLS)/bin/helm --program $(TARGET_DIR)/release/examples/template $(ARGS)

.PHONY: bench
bench: ## Fairway beside etcd and kube-apiserver; writes bench/results/DATE-COMMIT.md (ARGS=...)
	@scripts/tools.sh cc
	@scripts/peers.sh etcd kube-apiserver
	cargo build --release -p fairway -p fairway-bench
	$(BENCH) run --fairway $(TARGET_DIR)/release/fairway $(ARGS)

.PHONY: scale
scale: ## both at 1,000 to 100,000 objects, 1,000 CRDs and watchers; writes bench/results/scale-DATE-COMMIT.md with a plot
	@scripts/tools.sh cc
	@scripts/peers.sh etcd kube-apiserver
	cargo build --release -p fairway -p fairway-bench
	$(BENCH) scale --fairway $(TARGET_DIR)/release/fairway $(ARGS)

.PHONY: workspaces
workspaces: ## what a workspace costs among 10,000, and what a flood does; writes bench/results/workspaces-DATE-COMMIT.md
	@scripts/tools.sh cc
	cargo build --release -p fairway -p fairway-bench
	$(BENCH) workspaces --fairway $(TARGET_DIR)/release/fairway $(ARGS)

.PHONY: gitops-bench
gitops-bench: ## GitOps beside the real Argo CD, then with 5,000 applications; writes bench/results/gitops-DATE-COMMIT.md
	@scripts/tools.sh cc kubectl redis
	@scripts/peers.sh etcd kube-apiserver argocd
	cargo build --release -p fairway -p fairway-bench
	$(BENCH) gitops --fairway $(TARGET_DIR)/release/fairway $(ARGS)

.PHONY: renderers
renderers: ## `fairway render` beside kustomize and helm, by CPU time and memory; writes bench/results/renderers-DATE-COMMIT.md
	@scripts/tools.sh cc python
	@scripts/peers.sh kustomize
	cargo build --release -p fairway -p fairway-bench
	charts=$$($(PYTHON) tests/helm/run.py --paths $(MEASURED_CHARTS)); \
	$(BENCH) renderers --fairway $(TARGET_DIR)/release/fairway --results bench/results $${charts:+$$(printf -- '--chart %s ' $$charts)} $(ARGS)

.PHONY: rerender
rerender: ## a repository of 1,000 applications, rendered in full and after commits; writes bench/results/rerender-DATE-COMMIT.md
	@scripts/tools.sh cc
	cargo build --release -p fairway-bench
	$(BENCH) rerender --results bench/results $(ARGS)

.PHONY: switch-bench
switch-bench: ## frames through the userspace switch beside a bare copy; writes bench/results/switch-DATE-COMMIT.md
	@scripts/tools.sh cc
	cargo build --release -p fairway-bench
	$(BENCH) switch --results bench/results $(ARGS)

.PHONY: gateway-bench
gateway-bench: ## the data plane of gateways beside nginx and HAProxy; writes bench/results/gateway-DATE-COMMIT.md
	@scripts/tools.sh cc proxies
	cargo build --release -p fairway-gateway-proxy --example plain
	cargo build --release -p fairway-gateway-gatekeeper --example guarded
	cargo build --release -p fairway-bench -p fairway
	$(BENCH) gateway --proxy $(TARGET_DIR)/release/examples/plain --guarded $(TARGET_DIR)/release/examples/guarded \
		--fairway $(TARGET_DIR)/release/fairway --results bench/results $(ARGS)

.PHONY: machines-bench
machines-bench: ## apply to SSH beside the same QEMU by hand, memory, 100 machines; writes bench/results/machines-DATE-COMMIT.md (ARGS: bench/README.md)
	@scripts/tools.sh cc qemu $(if $(findstring --iperf,$(ARGS)),iperf3) $(if $(findstring --debian,$(ARGS)),mmdebstrap)
	cargo build --release -p fairway -p fairway-bench
	$(BENCH) machines --fairway $(TARGET_DIR)/release/fairway $(ARGS)

.PHONY: golden-path-bench
golden-path-bench: ## a run of the golden path, sign-in, the catalog, 5,000 realms, the platform at rest; writes bench/results/golden-path-DATE-COMMIT.md
	@scripts/tools.sh cc
	cargo build --release -p fairway -p fairway-bench
	$(BENCH) golden-path --fairway $(TARGET_DIR)/release/fairway $(ARGS)

.PHONY: portal-bench
portal-bench: web ## the portal's pages in a real Chromium: size, times, memory, frames; writes bench/results/portal-DATE-COMMIT.md
	@scripts/tools.sh cc python chromium portal kubectl
	cargo build --release -p fairway
	$(PYTHON) tests/portal/run.py --fairway $(TARGET_DIR)/release/fairway --tools $(TOOLS) --report bench/results

.PHONY: renderers-diff
renderers-diff: # the same few random cases each time; kustomize-diff and helm-diff are the long runs
	python3 tests/kustomize/diff.py --original $(TOOLS)/bin/kustomize --ours $(TARGET_DIR)/debug/examples/build --seed 1 --count 60
	$(PYTHON) tests/helm/diff.py --helm $(TOOLS)/bin/helm --program $(TARGET_DIR)/debug/examples/template --count 20

.PHONY: kustomize-diff
kustomize-diff: ## random kustomizations, built by the real kustomize and by Fairway (ARGS='--count 20000' for a long run)
	@scripts/peers.sh kustomize
	cargo build --release -p fairway-gitops-kustomize --example build
	python3 tests/kustomize/diff.py --original $(TOOLS)/bin/kustomize --ours $(TARGET_DIR)/release/examples/build $(ARGS)

.PHONY: helm-diff
helm-diff: ## random charts, rendered by the real helm and by Fairway (ARGS='--seed 1000 --count 20000' for a long run)
	@scripts/tools.sh cc python
	cargo build --release -p fairway-gitops-helm --example template
	$(PYTHON) tests/helm/diff.py --helm $(TOOLS)/bin/helm --program $(TARGET_DIR)/release/examples/template $(ARGS)

.PHONY: fmt
fmt: ## format the code
	cargo fmt --all

.PHONY: fmt-check
fmt-check: ## check the format
	cargo fmt --all --check

.PHONY: lint
lint: ## clippy without warnings, on everything including the benchmark
	cargo clippy --workspace --all-targets -- -D warnings

.PHONY: deny
deny: ## licences, bans and sources of the dependencies
	@scripts/tools.sh deny
	cargo-deny --log-level warn check --hide-inclusion-graph licenses bans sources

.PHONY: codegen
codegen: ## write the generated files again from the Kubernetes Go module
	cargo xtask codegen schema
	cargo xtask codegen protobuf
	cargo xtask codegen merge-keys
	cargo xtask codegen argoproj
	cargo xtask codegen machines
	cargo xtask codegen gateway
	cargo xtask tidy --lock

.PHONY: clean
clean: ## remove what was built; tools stay (they are slow to build), remove .tools by hand
	cargo clean
