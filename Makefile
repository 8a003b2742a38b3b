# The commands of this repository; each calls one tool. `make` alone lists them.
PYTHON ?= python3
PIP_ARGS ?=
PORT ?= 8000
VENV := .venv
READY := $(VENV)/installed
RUN := $(VENV)/bin/python
OTHERS := .venv-frameworks

.PHONY: help book test check read notebooks vendor frameworks clean

help:
	@echo 'make book       build the book into _build/html'
	@echo 'make test       run all tests'
	@echo 'make read       build the book and serve it on localhost (PORT=$(PORT))'
	@echo 'make check      lint, types, notebooks and numbers in step'
	@echo 'make notebooks  write the .ipynb beside each chapter'
	@echo 'make vendor     rebuild the third-party JavaScript and compare it (needs npm)'
	@echo 'make frameworks run the layer in Keras, Flax and PyTensor, in $(OTHERS) (RECORD=1: write it down)'
	@echo 'make clean      remove what was built; $(VENV) and $(OTHERS) stay'

$(READY): requirements.txt pyproject.toml tools/environment.py
	$(PYTHON) tools/environment.py $(VENV) requirements.txt $(PIP_ARGS)

$(OTHERS)/installed: requirements-frameworks.txt pyproject.toml tools/environment.py
	$(PYTHON) tools/environment.py $(OTHERS) requirements-frameworks.txt $(PIP_ARGS)

book: $(READY)
	$(RUN) tools/build_book.py

test: $(READY)
	$(RUN) -m pytest -n 2 --dist worksteal -rfEs

check: $(READY)
	$(RUN) -m ruff check
	$(RUN) -m ruff format --check
	$(RUN) -m mypy
	BOOK_CHECK=1 $(RUN) tools/build_book.py
	$(RUN) tools/export_notebooks.py --check

read: book
	$(RUN) -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

notebooks: $(READY)
	$(RUN) tools/export_notebooks.py

vendor: $(READY)
	$(RUN) tools/vendor.py

frameworks: $(OTHERS)/installed
	$(OTHERS)/bin/python tools/frameworks.py $(if $(RECORD),--record)

clean:
	rm -rf _build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
