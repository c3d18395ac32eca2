# webarcfs: `make help` says what there is to make.
#
# On a fresh Debian 12 everything installs itself: Debian's packages (as root; otherwise it says which are missing), and a
# virtual environment in .venv. A second run finds both and is quick.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
# Debian's own Python where there is one: what else is on PATH may lack the headers or the version.
PYTHON := $(firstword $(wildcard /usr/bin/python3) python3)

# What webarcfs runs on.
SYSTEM := python3 python3-venv ca-certificates git wget fuse3 libfuse2 libmagic1 util-linux
# What the demo shows and serves beside it.
DEMO := attr tidy python3.11-doc
# What the tests and benchmarks crawl and call.
TEST := attr tidy procps groff-base rsync strace systemd vim-tiny emacs-nox ed zip unzip patch libreoffice-writer-nogui \
  python3.11-doc postgresql-doc-15 debian-handbook libboost1.81-doc chromium firefox-esr nginx-light apache2 fonts-dejavu-core httrack zstd \
  prometheus

# What the benchmarks compile.
BENCH := gcc libc6-dev libfuse3-dev pkg-config
# What compiles the modules that a mount runs most.
COMPILE := gcc libc6-dev python3-dev

# The tests start thousands of processes; without its bytecode kept each would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

# How many files of tests run at a time: many wait for servers and pauses more than for a processor.
JOBS ?= 6

# Further words for pytest, as in `make test ARGS="-k robots"`, or for the benchmarks.
ARGS ?=

.PHONY: help demo desk check test lint coverage bench bench-large soak compiled man dist install pywb warcprox apps clean
.PHONY: pure system-packages demo-packages test-packages bench-packages compile-packages

help: ## Say what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: install demo-packages ## Crawl a real site, mount the archive and walk through it; URL=http://… takes yours
	@$(BIN)/python examples/demo.py $(if $(URL),'$(URL)')

desk: install demo-packages ## The curators' desk: an archive with two people, until the Enter key; prints how to log in
	@$(BIN)/python examples/desk_demo.py

check: install ## Before each commit, in less than a minute: lint, types, layers, and the tests that need no files and no processes
	@$(MAKE) --no-print-directory -j2 --output-sync=target lint pure

pure: install
	@echo "pytest: the tests that need no files and no processes, without those of seconds"
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal -m "not large" --hypothesis-profile=check tests/pure $(ARGS)

test: install test-packages compile-packages ## Lint, types and all tests; ARGS="-k robots" picks some
	@$(MAKE) --no-print-directory -j3 --output-sync=target lint compiled pywb warcprox apps # side by side: each waits for one processor
	echo "pytest: the tests, real git, wget and mounts among them"
	rm -f .pytest_cache/v/cache/lastfailed # what failed in another run, and is not among these tests, is none of the second
	$(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS) && exit 0 || status=$$?
	@# What failed beside other tests is run once more, alone: that tells a defect of the code from an unsteady test.
	@# Neither is green, but for the tests that tests/unsteady.txt lists.
	[ "$$status" = 1 ] || exit "$$status"
	$(BIN)/python -m tests.unsteady

lint: install ## ruff (rules and format), mypy (strict) and import-linter (layers)
	@echo "ruff check, ruff format --check, mypy, lint-imports: rules, format, types and layers"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy examples/demo.py examples/desk_demo.py
	$(BIN)/lint-imports --no-cache --no-logo

coverage: install test-packages ## Which lines the tests of tests/pure and tests/store run, subprocesses included; ARGS=tests/crawl adds more
	@rm -rf build/coverage && mkdir -p build/coverage
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --cov --cov-report term:skip-covered --cov-report html tests/pure tests/store $(ARGS)
	echo "line by line: build/coverage/html/index.html"

bench: install test-packages bench-packages compiled pywb warcprox ## Measure, and print the ratios
	@$(BIN)/python -m tests.bench $(ARGS)

bench-large: install test-packages bench-packages compiled pywb warcprox ## The same with the large sites; takes long
	@$(BIN)/python -m tests.bench --large $(ARGS)

soak: install test-packages compiled pywb ## The long tests: many seeds, kills at random moments, minutes under load; ARGS=NAME picks one
	@$(BIN)/python -m tests.soak $(ARGS)

compiled: install compile-packages ## Compile the modules that a mount runs most, if they have changed since; a minute
	@$(BIN)/python -m webarcfs.compiled.build

install: $(VENV)/.installed ## Debian's packages and the virtual environment, as far as they are missing

pywb: install .venv-pywb/.installed ## The engine that runs the scripts of archived pages, in an environment of its own

warcprox: install .venv-warcprox/.installed ## The recorder of the tests, in an environment of its own

apps: install ## The front ends of others that the tests record and show, into ~/.cache: wheels, pinned by digests
	@$(BIN)/python -m tests.support.built_apps

man: install ## Write the man pages that derive from the code into man/, beside the others
	@$(BIN)/python -m agent.manual man

dist: install ## A wheel and a source archive in dist/, which install and run without this checkout
	@version=$$($(BIN)/python -c 'import webarcfs; print(webarcfs.__version__)')
	tag=$$(git describe --exact-match --tags --match 'v*' 2> /dev/null || true)
	if [ -n "$$tag" ] && [ "$$tag" != "v$$version" ]; then
		echo "the tag is $$tag, and webarcfs/__init__.py says $$version: set one of them right" >&2
		exit 1
	fi
	rm -rf dist
	$(BIN)/python -m build --quiet --outdir dist .
	ls -l dist

clean: ## Remove the virtual environment and what tools left behind
	@rm -rf $(VENV) .venv-pywb .venv-warcprox build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -rf webarcfs/_compiled
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp is renewed when the dependencies may have changed.
$(VENV)/.installed: pyproject.toml | system-packages
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	echo "installing webarcfs and what it needs into $(VENV)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --use-pep517 -e '.[test]'
	touch $@

# Programs of their own (GPL; cdxj-indexer, of tests, needs a library under the AGPL), which nothing of ours imports; their
# libraries would get into the way of ours.
.venv-pywb/.installed: Makefile | system-packages
	@[ -x .venv-pywb/bin/python ] || $(PYTHON) -m venv .venv-pywb
	echo "installing pywb into .venv-pywb"
	.venv-pywb/bin/python -m pip install --quiet --disable-pip-version-check 'pywb==2.10.0' 'cdxj-indexer==1.5.0' 'setuptools<81'
	touch $@

.venv-warcprox/.installed: Makefile | system-packages
	@[ -x .venv-warcprox/bin/python ] || $(PYTHON) -m venv .venv-warcprox
	echo "installing warcprox into .venv-warcprox"
	.venv-warcprox/bin/python -m pip install --quiet --disable-pip-version-check 'warcprox==2.13.1' 'setuptools<81'
	touch $@

# $(call debian,PACKAGES) installs those that are missing, the documentation that images for containers leave out included.
define debian
if ! command -v dpkg-query > /dev/null; then
	echo "this is no Debian; see to it that there is what its packages hold: $(1)"
	exit 0
fi
wanted=()
for package in $(1); do
	state=$$(dpkg-query -W -f '$${db:Status-Status}' "$$package" 2> /dev/null || true)
	page=
	if [ "$$state" = installed ]; then
		page=$$(dpkg-query -L "$$package" | awk '/\/index\.html$$/ { page = $$0 } END { print page }')
	fi
	if [ "$$state" != installed ] || { [ -n "$$page" ] && [ ! -e "$$page" ]; }; then wanted+=("$$package"); fi
done
[ "$${#wanted[@]}" != 0 ] || exit 0
if [ "$$(id -u)" != 0 ]; then
	echo "Debian packages are missing; as root: apt-get install $${wanted[*]}" >&2
	exit 1
fi
echo "installing Debian packages: $${wanted[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq || echo "apt-get update failed; going on with the lists that are here" >&2
apt-get install -qq -y --no-install-recommends --reinstall \
	-o 'Dpkg::Options::=--path-include=/usr/share/doc/*' "$${wanted[@]}" > /dev/null
endef

# fusermount reads /etc/mtab, which a root that never booted has not got.
system-packages:
	@[ -e /etc/mtab ] || [ "$$(id -u)" != 0 ] || ln -s ../proc/self/mounts /etc/mtab
	$(call debian,$(SYSTEM))

demo-packages:
	@$(call debian,$(DEMO))

test-packages:
	@$(call debian,$(TEST))

bench-packages:
	@$(call debian,$(BENCH))

compile-packages:
	@$(call debian,$(COMPILE))
