"""Who answers what a built-in reward leaves open: a library, in a limited process of its own.

    reward (pure, in the driver) --Question--> Judge --> limited process: math-verify, jsonschema
           <-----------------------Verdict----

What a policy writes can hold a library for minutes, or end its process. So each question has its
computing time and a deadline by the clock; a process that one question spoiled is replaced, so that
an answer never depends on the questions before it. Answers are remembered.
"""

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from coloop.data.rewards.scoring import Question
from coloop.data.tables.row import Score
from coloop.errors import DataError, UserCodeError
from coloop.sandbox.process import Sandbox

FOLDER: Final = Path(__file__).parent / "inside"
SHARED: Final = {"schema": Path(__file__).parents[1] / "json_schemas.py"}
"""Code that the check of a loop also uses."""
CPU_SECONDS: Final = 2.0
"""CPU limit of one question; usual answers take 0.01 to 0.25 seconds."""
DEADLINE_SECONDS: Final = 20.0
"""Wall-clock limit for code that no signal interrupts; ten times as long, for a busy machine."""
PATIENCE_SECONDS: Final = 60.0
"""Total time per call for undecided questions; later questions are not asked."""
MEMORY_MIB: Final = 1024
MOST_REMEMBERED: Final = 65_536

Tick = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    score: Score
    problem: str | None = None
    """What is wrong with the row."""
    note: str | None = None
    """Why the judge could not decide; the score counts."""


class Judge(Protocol):
    """Answers questions; closed when the run ends."""

    def verdicts(self, questions: Sequence[Question], tick: Tick) -> list[Verdict]:
        """Verdicts in order. `tick` is called a few times a second, and may raise."""

    def close(self) -> None:
        """End what it started."""


def source_of(name: str) -> str:
    return SHARED.get(name, FOLDER / f"{name}.py").read_text(encoding="utf-8")


class LibraryJudge:
    """One library in one process, asked question by question."""

    def __init__(self, name: str, node: str, *, library: str) -> None:
        """
        Args:
            name: of the file in `inside`.
            library: its name in error messages.
        """
        self._node = node
        self._library = library
        self._sandbox = Sandbox(
            source_of(name),
            function="judge",
            node=node,
            timeout_seconds=DEADLINE_SECONDS,
            memory_mib=MEMORY_MIB,
            is_ours=True,
        )
        self._known: OrderedDict[str, Verdict] = OrderedDict()

    def verdicts(self, questions: Sequence[Question], tick: Tick) -> list[Verdict]:
        with self._sandbox.held(tick):
            return self._verdicts(questions)

    def _verdicts(self, questions: Sequence[Question]) -> list[Verdict]:
        left = PATIENCE_SECONDS
        verdicts = []
        for question in questions:
            key = json.dumps(question.columns, sort_keys=True, default=str)
            verdict = self._known.get(key)
            if verdict is None and left <= 0:
                note = (
                    f"{self._library} was not asked: earlier texts in this step took "
                    f"{PATIENCE_SECONDS:g} seconds without an answer"
                )
                verdict = Verdict(score=None, note=note)
            elif verdict is None:
                began = time.monotonic()
                verdict = self._ask(question.columns)
                left -= time.monotonic() - began if verdict.note else 0.0
                self._known[key] = verdict
                if len(self._known) > MOST_REMEMBERED:
                    self._known.popitem(last=False)
            verdicts.append(verdict)
        return verdicts

    def _ask(self, columns: Mapping[str, Any]) -> Verdict:
        self._start()
        try:
            [answer] = self._sandbox.write([columns], cpu_seconds=CPU_SECONDS)
        except UserCodeError as error:
            self._sandbox.close()
            return Verdict(
                score=0.0, note=f"{self._library} did not decide: {self._sandbox.bare(error)}"
            )
        assert answer is not None
        if "problem" in answer:
            return Verdict(score=None, problem=str(answer["problem"]))
        return Verdict(score=float(answer["score"]))

    def _start(self) -> None:
        """Start a sandboxed process with the library: math-verify evaluates what it reads.

        Raises:
            DataError: the library cannot be used here.
        """
        try:
            self._sandbox.load()
        except UserCodeError as error:
            self._sandbox.close()
            raise DataError(
                f"{self._node}: {self._library} cannot be used here: {self._sandbox.bare(error)}",
                self._node,
                "source.name",
            ) from None

    def close(self) -> None:
        self._sandbox.close()
