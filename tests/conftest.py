"""The built book, for the tests that read it: built once a session, whatever the workers."""

import functools
import http.server
import json
import os
import random
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from built_book import CACHE, ROOT, Built, run_build
from filelock import FileLock

from rmsnorm_edu.recorded.provenance import gpus

# Triton compiles or interprets for a whole process; what is first to import it must not decide.
os.environ.setdefault("TRITON_INTERPRET", "0" if gpus() else "1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of the built book last: one worker builds it while the other does the rest."""
    items.sort(key=lambda item: "built" in getattr(item, "fixturenames", ()))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """What a test leaves to chance is the same for it, whatever was drawn before it."""
    random.seed(0)
    np.random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.manual_seed(0)


@pytest.fixture(scope="session", autouse=True)
def _ipython_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """IPython, which pages load, writes here: a home that is read-only is no warning."""
    os.environ["IPYTHONDIR"] = str(tmp_path_factory.mktemp("ipython"))


@pytest.fixture
def own_threads() -> Iterator[None]:
    """How many threads torch is told to take in this test is forgotten after it."""
    import torch

    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Built:
    """The whole book, in a folder of its own; the first worker to ask builds, the others wait.

    Cells that `make book` ran already, with this very package, are not run again: one test runs
    them all a second time, elsewhere, and wants the same bytes.
    """
    shared = tmp_path_factory.getbasetemp()
    if worker_id != "master":
        shared = shared.parent
    folder, done = shared / "book", shared / "book.json"
    with FileLock(shared / "book.lock"):
        if not done.exists():
            ran = ROOT / CACHE
            if ran.is_dir():
                shutil.copytree(ran, folder / CACHE)
            result = run_build(folder)
            done.write_text(json.dumps([result.code, result.log]), encoding="utf-8")
    code, log = json.loads(done.read_text(encoding="utf-8"))
    return Built(folder / "_build" / "html", code, log)


@pytest.fixture(scope="session")
def html(built: Built) -> Path:
    """The folder of the built site. That its build had no warning is a test of its own."""
    if not (built.html / "book" / "index.html").is_file():
        pytest.fail("the book was not built:\n" + built.log[-3000:])
    return built.html


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, logs nothing."""

    def log_message(self, *args: object) -> None:
        """No line a request."""


class Server(http.server.ThreadingHTTPServer):
    """Lets a browser's burst of connections wait; the default refuses the sixth."""

    request_queue_size = 64


@pytest.fixture(scope="session")
def site(html: Path) -> Iterator[str]:
    """The built site's address, with a slash at its end, served on localhost."""
    handler = functools.partial(Quiet, directory=html)
    server = Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()
