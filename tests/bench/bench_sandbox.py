"""How fast Python of a loop runs in its limited process: `python -m tests.bench.bench_sandbox`.

With each isolation that this machine has, and with none, in one run: simple rewards a second of a
warm process in batches of 1,024 rows, the time from nothing to the first answer, and the same code
called in this process as the practical limit. Goals: 20,000 rewards a second, start under 150 ms.
"""

import statistics
import time
from collections.abc import Callable

from coloop.errors import UserCodeError
from coloop.sandbox.inside.isolation import Isolation
from coloop.sandbox.process import Sandbox

ROWS, CALLS, STARTS = 1024, 40, 15
GOAL_RATE, GOAL_START = 20_000.0, 0.150
CODE = """
def reward(prompts, completions, answer, **columns):
    return [float(text.strip() == str(right)) for text, right in zip(completions, answer)]
"""


def columns() -> dict[str, list[object]]:
    return {
        "prompts": [f"{row} + 1 =" for row in range(ROWS)],
        "completions": [f" {row + row % 2}" for row in range(ROWS)],
        "answer": [row + 1 for row in range(ROWS)],
    }


def started(isolation: Isolation) -> float:
    """Seconds from nothing to the first answer."""
    begin = time.perf_counter()
    with Sandbox(CODE, function="reward", node="bench", isolation=isolation) as child:
        child.load()
        return time.perf_counter() - begin


def rate(score: Callable[[], object]) -> float:
    """Rows a second, the median of calls."""
    seconds = []
    for _ in range(CALLS):
        begin = time.perf_counter()
        score()
        seconds.append(time.perf_counter() - begin)
    return ROWS / statistics.median(seconds)


def main() -> None:
    rows = columns()
    space: dict[str, Callable[..., object]] = {}
    exec(CODE, space)
    bare = rate(lambda: space["reward"](**rows))
    print(f"{'isolation':<12} {'rewards/s':>12} {'start ms':>10} {'slowest':>8}   goals")
    for isolation in Isolation:
        try:
            starts = [started(isolation) for _ in range(STARTS)]
        except UserCodeError as error:
            print(f"{isolation:<12} not here: {error}")
            continue
        with Sandbox(CODE, function="reward", node="bench", isolation=isolation) as child:
            child.load()
            found = rate(lambda child=child: child.score(rows, ROWS))
        begin = statistics.median(starts)
        good = found >= GOAL_RATE and begin <= GOAL_START
        print(
            f"{isolation:<12} {found:>12,.0f} {begin * 1e3:>10.1f} {max(starts) * 1e3:>8.1f}   "
            f"{'reached' if good else 'missed'}"
        )
    print(f"{'this process':<12} {bare:>12,.0f}")


if __name__ == "__main__":
    main()
