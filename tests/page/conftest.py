"""A browser, and a page served by a process of its own."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

ROOT = Path(__file__).parents[2]
NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


class Served:
    """A page that is served; `do` changes what it shows."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.address = f"http://127.0.0.1:{self._line()}/"

    def do(self, what: str, **how: Any) -> None:
        """Change something, and wait until that is done."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": what, **how}) + "\n")
        self._process.stdin.flush()
        assert self._line() == "done"

    def stop(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


Serve = Callable[..., Served]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a page; its process ends with the test."""
    python = os.environ.get("PAGE_PYTHON", str(ROOT / ".venv" / "bin" / "python"))
    paths = os.pathsep.join(str(ROOT / name) for name in ("tests", "operator/src", "spark_app/src"))
    started: list[Served] = []

    def start(*arguments: str) -> Served:
        process = subprocess.Popen(  # noqa: S603 - our own program
            [python, "-m", "support.page_server", *arguments],
            env={**os.environ, "PYTHONPATH": paths},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(Served(process))
        return started[-1]

    yield start
    for served in started:
        served.stop()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium."""
    found = os.environ.get("CHROMIUM") or next(
        (path for name in NAMES if (path := shutil.which(name))), None
    )
    if found is None:
        pytest.skip("no Chromium: install a package of it, or set CHROMIUM to its path")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox", "--disable-gpu"]
        )
        yield started
        started.close()


class Watched:
    """A tab, and everything that it did wrong."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        self.requested: set[str] = set()
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", self._on_request)
        page.add_init_script(
            "addEventListener('securitypolicyviolation', (e) => console.error('policy: ' +"
            " e.violatedDirective))"
        )

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def _on_request(self, request: Request) -> None:
        self.requested.add(request.url)


@pytest.fixture
def open_page(browser: Browser) -> Callable[..., Any]:
    """Opens a tab; it must neither write an error nor send a request to another host."""

    @contextmanager
    def opened(address: str, *, expected: tuple[str, ...] = ()) -> Iterator[Page]:
        tab = browser.new_page(viewport={"width": 1280, "height": 1600})
        watched = Watched(tab)
        tab.goto(address)
        yield tab
        tab.close()
        assert [e for e in watched.errors if not any(text in e for text in expected)] == []
        host = "/".join(address.split("/")[:3]) + "/"
        assert [url for url in watched.requested if not url.startswith(host)] == []

    return opened
