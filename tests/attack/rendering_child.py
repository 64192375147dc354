"""Renders templates from standard input, one JSON line each, and tells what each took.

Reads `{"source": ..., "is_chat": ...}`, writes `{"seconds", "mebibytes", "outcome", "text"}`:
computing time of checking the names and of rendering, and the most memory over what the process had
before. Its address space is limited, so that a bomb ends here and not in the machine.
"""

import json
import resource
import sys
import time
import warnings
from pathlib import Path

from coloop.data.templates import budget
from coloop.data.templates.chat import render_chat
from coloop.data.templates.environment import RenderProblem, render_text
from coloop.data.templates.grammar import names_of
from coloop.validate.texts import names_in_text

ROOM = 1024 * 2**20
"""Bytes of address space over the start: enough to see by how much a limit is broken."""

STATUS = Path("/proc/self/status")
NEST: dict[str, object] = {"leaf": "x" * 1000}
for _ in range(30):
    NEST = {"a": NEST, "b": [NEST, NEST]}
ALIKE = [number * (2**61 - 1) for number in range(1, 33_000)]
"""Numbers that a dict cannot tell apart without comparing them."""
NAMES = names_of(
    {
        "prompt": "2+2=",
        "long": "a b" * 300_000,
        "spaces": " " * 900_000,
        "same": "a" * 900_000,
        "angle": "<" * 900_000,
        "wide": "\U0001f600" * 250_000,
        "lines": "x\n" * 400_000,
        "digits": "9" * 900_000,
        "many": list(range(90_000)),
        "alike": ALIKE,
        "pairs": [[number, 0] for number in ALIKE],
        "texts": ["word " * 200] * 400,
        "nest": NEST,
        "rows": [{"a": "x" * 1000, "b": k % 7, "c": {"d": [k]}} for k in range(500)],
        "table": {str(k): "y" * 100 for k in range(5000)},
        "past": lambda column: ["earlier " * 50] * 50,
        "others": lambda column, k: ["other " * 50] * min(max(0, k), 50),
    },
    {"judge.completion": "verdict " * 2000, "judge.tags": ["t"] * 1000},
    {"judge": 0.5, "exact": 1.0},
)


MESSAGES = [{"role": "user", "content": NAMES[name]} for name in ("long", "nest", "rows", "same")]


def read_status(name: str) -> int:
    """Bytes that a line of the process's status names."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024


def forget_peak() -> None:
    """Begin the highest mark of memory anew, where the system lets one."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def render(source: str, *, is_chat: bool) -> str:
    """As a text of a loop, or as the chat template of a model."""
    if is_chat:
        values = {**NAMES, "add_generation_prompt": True, "tools": NAMES["rows"]}
        return render_chat(source, MESSAGES, values)[0]
    names_in_text(source)
    return render_text(source, NAMES)


def answer(source: str, before: int, *, is_chat: bool) -> dict[str, object]:
    """What a template took.

    Args:
        before: bytes that the process had when it began.
    """
    forget_peak()
    began = time.thread_time()
    text = ""
    try:
        text = render(source, is_chat=is_chat)
        outcome = "rendered"
    except RenderProblem as problem:
        outcome = f"refused: {problem}"
    except BaseException as error:
        outcome = f"raised {type(error).__name__}: {error}"
    seconds = time.thread_time() - began
    peak = max(read_status("VmHWM") - before, 0)
    return {
        "seconds": seconds,
        "mebibytes": peak / 2**20,
        "outcome": outcome[:300],
        "text": text[:300],
    }


def main() -> None:
    warnings.simplefilter("ignore")  # Python sees at once that some make no sense
    budget.SECONDS = float(sys.argv[1])  # type: ignore[misc]
    for is_chat in (False, True):
        render("{{ prompt }}", is_chat=is_chat)
    before = read_status("VmRSS")
    limit = read_status("VmSize") + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for line in sys.stdin:
        asked = json.loads(line)
        told = json.dumps(answer(asked["source"], before, is_chat=asked["is_chat"]))
        sys.stdout.write(told + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
