"""What all tests share: golden files that can be rewritten, and the one Ray of the session."""

import gc
import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings
from tests.workers import SHARED, group_of

from coloop.workers.ray.ray_settings import AT_EVEN_PRIORITY, PATIENCE

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[1]
RAY_CPUS = 8
LONG = ("tests/presets/", "tests/engine/training/")
"""Where files take long of which others would be over, and wait, if they came in their order."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM_OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP elsewhere.example 127.0.0.1",
)

os.environ["COLOOP_PLUGINS"] = "off"
"""The language of the tests is that of coloop alone, whatever else is installed."""
os.environ["COLOOP_MEASURED"] = "off"
os.environ["COLOOP_CORES"] = "1"
os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX512_CORE_VNNI"
"""The machine of the tests, whichever it is: one core without products in bfloat16. So plans, bits
and curves are the same everywhere, in processes that tests start as well."""

os.fsync = lambda fd: None
"""No machine loses its power under a test; what was written is there for everybody who reads it."""

settings.register_profile(
    "anywhere",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("anywhere")
"""A slow or busy machine fails no property test, and every machine draws the same examples."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write golden files anew instead of comparing with them; review the diff",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """A million objects of the tests stay to the end: no collection of garbage looks at them again,
    which would take a second of whatever test it happens in."""
    gc.disable()
    collected = yield
    gc.freeze()
    gc.enable()
    return collected


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files of slow tests alone are not even read where no slow test is asked for."""
    if not config.option.markexpr.startswith("not slow") or collection_path.suffix != ".py":
        return None
    return True if is_slow(collection_path) else None


@cache
def is_slow(path: Path) -> bool:
    """Whether all tests of a file are slow."""
    text = path.read_text(encoding="utf-8")
    _, found, marks = text.partition("\npytestmark = ")
    stated = marks.partition("]" if marks.startswith("[") else "\n")[0]
    return bool(found) and "pytest.mark.slow" in stated


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first; of a sampled test those cases are slow that are left out."""
    sampled: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sample") and not item.get_closest_marker("slow"):
            sampled.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, cases in sampled.items():
        mark = cases[0].get_closest_marker("sample")
        assert mark is not None
        for place in sorted(set(range(len(cases))) - set(spread(name, len(cases), *mark.args))):
            cases[place].add_marker(pytest.mark.slow)
    items.sort(key=lambda item: turn_of(item.nodeid.partition("::")[0]))


def spread(name: str, size: int, count: int) -> list[int]:
    """Places of `count` cases among `size`, as far from one another as they can be.

    Tests of the same cases begin at different ones, by their names, so that together they see most.
    """
    if count >= size:
        return list(range(size))
    first = crc32(name.encode()) % (size // count) if size >= 8 * count else 0
    return [first + place * size // count for place in range(count)]


@cache
def turn_of(path: str) -> int:
    """Which files a file of tests comes beside: a lower number begins earlier."""
    return 0 if group_of(path) in SHARED else 1 if path.startswith(LONG) else 2


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be written instead of compared."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture(scope="session")
def local_ray() -> Iterator[None]:
    """The one Ray of the test session; what a test starts on it, the test ends."""
    os.environ.update(PATIENCE)
    ray = pytest.importorskip("ray")
    from coloop.workers.ray.ray_patience import wait_for_slow_nodes

    wait_for_slow_nodes()
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT / "engine"), before]))
    os.environ.update(AT_EVEN_PRIORITY)
    ray.init(
        address="local",
        num_cpus=RAY_CPUS,
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
    )
    yield
    ray.shutdown()
    os.environ["PYTHONPATH"] = before


@pytest.fixture(scope="session")
def chromium() -> "Iterator[Browser]":
    """The one browser of the test session: Playwright starts once in a process."""
    sync_api = pytest.importorskip("playwright.sync_api")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("no Chromium; `make chromium` installs it where it can")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found, headless=True, args=[*CHROMIUM_OPTIONS]
        )
        yield browser
        browser.close()
