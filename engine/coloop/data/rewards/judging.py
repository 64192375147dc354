"""Judges answer the questions that a built-in reward cannot decide itself, by a library in a
sandbox.

    reward (pure, in the driver) --Question--> Judge --> sandbox: math-verify, jsonschema
           <-----------------------Verdict----

A completion can block a library for minutes or crash its process. So each question has a CPU limit
and a deadline, and after a failure the next one gets a new process. Answers are cached.
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
"""Judges outside of `inside`, because `coloop check` uses them too."""
CPU_SECONDS: Final = 2.0
"""CPU limit of one question; usual answers take 0.01 to 0.25 seconds."""
DEADLINE_SECONDS: Final = 20.0
"""Wall-clock limit of one question, for code that the CPU limit does not interrupt."""
PATIENCE_SECONDS: Final = 60.0
"""Seconds per call that may go to questions without an answer; later ones are not asked."""
MEMORY_MIB: Final = 1024
MOST_REMEMBERED: Final = 65_536

Tick = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    score: Score
    problem: str | None = None
    """Why the row cannot be scored; the score has no meaning then."""
    note: str | None = None
    """Why the judge could not decide; `score` is used all the same."""


class Judge(Protocol):
    """Answers the questions of one reward."""

    def verdicts(self, questions: Sequence[Question], tick: Tick) -> list[Verdict]:
        """One verdict per question. `tick` is called a few times a second; it may raise."""

    def close(self) -> None:
        """End the processes that it started."""


def source_of(name: str) -> str:
    return SHARED.get(name, FOLDER / f"{name}.py").read_text(encoding="utf-8")


class LibraryJudge:
    """A library in one sandbox, which answers the questions one by one."""

    def __init__(self, name: str, node: str, *, library: str) -> None:
        """
        Args:
            name: of the source, see `source_of`.
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
        """Start the sandbox and import the library in it.

        Raises:
            DataError: the library, or the sandbox, does not work on this machine.
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
