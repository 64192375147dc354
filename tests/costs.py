"""Processor seconds of every test, its own and those of the processes that it ended.

    make test PYTEST="-p tests.costs"
    python -m tests.costs               # by file, the most costly first
    python -m tests.costs --tests       # by test

Seconds by the clock say little on a machine that runs several tests at once. A process that
outlives its test (a Ray or a server that a session shares) counts for the test that waits for it.
"""

import argparse
import json
import os
import resource
import sys
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest
from tests import workers

STORE = Path(__file__).resolve().parents[1] / ".coloop" / "costs"


def spent() -> tuple[float, float]:
    """Processor seconds of this process, and of the children that it has waited for."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime, children.ru_utime + children.ru_stime


def pytest_configure(config: pytest.Config) -> None:
    STORE.mkdir(parents=True, exist_ok=True)
    for path in STORE.glob("*.jsonl"):
        path.unlink()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    own, children = spent()
    outcome = yield
    now = spent()
    row = {"test": item.nodeid, "own": now[0] - own, "children": now[1] - children}
    worker = os.environ.get(workers.NAME, "alone")
    with (STORE / f"{worker}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tests", action="store_true", help="by test, not by file")
    parser.add_argument("--most", type=int, default=60, help="lines to print")
    options = parser.parse_args()
    own: Counter[str] = Counter()
    children: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for path in sorted(STORE.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            key = row["test"] if options.tests else row["test"].partition("::")[0]
            own[key] += row["own"]
            children[key] += row["children"]
            count[key] += 1
    if not count:
        sys.exit('nothing was measured yet: make test PYTEST="-p tests.costs"')
    print("      all      own children   tests")
    rows = [("all", (own + children).total(), own.total(), children.total(), count.total())]
    for key, value in (own + children).most_common(options.most):
        rows.append((key, value, own[key], children[key], count[key]))
    for name, *seconds, tests in rows:
        print("".join(f"{value:9.1f}" for value in seconds) + f"{tests:8d}  {name}")


if __name__ == "__main__":
    main()
