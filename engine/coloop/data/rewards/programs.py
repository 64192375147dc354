"""The reward `code_tests`: runs programs of a policy in sandboxes. Where possible, expected results
stay outside the sandbox, so that the program cannot read them.

    tests: ["assert add(1, 2) == 3"]               the call runs inside, 3 is compared outside
           ["assert is_prime(7)"]                  runs inside; a program can cheat such a test
           "def check(candidate): ..."             runs inside, called with the row's `entry_point`
           [{"input": "1 2", "output": "3"}]       the output is compared outside
"""

import ast
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any, Final

from coloop.data.rewards.judging import Tick, Verdict, source_of
from coloop.data.rewards.program_tests import (
    CHECK,
    ENTRY_POINT,
    UNREADABLE,
    Case,
    entry_point_of,
    functions_of,
    lines_of,
    program_of,
    read_tests,
    wanted_by,
)
from coloop.data.rewards.scoring import Question, ScoringRow, by_text, extracted
from coloop.data.tables.row import Score
from coloop.errors import UserCodeError
from coloop.sandbox.process import Sandbox, available_isolation
from coloop.spec import builtins as options

AT_ONCE: Final = 8
WAITS: Final = 4.0
"""Wall-clock limit as a multiple of the CPU limit, because a busy machine makes programs wait."""
AMBIGUOUS: Final = (
    f"the tests define `{CHECK}(candidate)`, but the row has no `{ENTRY_POINT}`, and the program "
    f"defines several functions; add a column `{ENTRY_POINT}` with the function's name"
)


@by_text
def code_tests(text: str, row: ScoringRow, given: options.CodeTests) -> Score | Question:
    """1 if the program passes all tests of its row, else 0; `graded`: the share that it passes."""
    value = row.columns.get(given.column)
    if value is None:
        return None
    tests = read_tests(value, given.column)
    is_check = any(test.kind == "check" for test in tests)
    candidate = entry_point_of(row.columns.get(ENTRY_POINT)) if is_check else None
    wanted = wanted_by(tests, candidate)
    code = program_of(text, wanted) if given.extract is None else extracted(text, given.extract)
    if code is None or not code.strip():
        return 0.0
    if is_check and candidate is None:
        functions = functions_of(code)
        if not functions:
            return 0.0
        candidate = functions[0] if len(functions) == 1 else None
    return Question(columns={"code": code, "tests": tests, "candidate": candidate})


class ProgramJudge:
    """Runs the programs of several rows at once."""

    def __init__(self, node: str, given: options.CodeTests) -> None:
        self._node = node
        self._given = given

    def verdicts(self, questions: Sequence[Question], tick: Tick) -> list[Verdict]:
        is_over = threading.Event()
        available_isolation()  # once, not in each thread
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="programs") as pool:
            try:
                futures = [pool.submit(self._verdict, each.columns, is_over) for each in questions]
                self._await(futures, tick)
            except BaseException:
                is_over.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return [future.result() for future in futures]

    def _await(self, futures: Sequence[Future[Verdict]], tick: Tick) -> None:
        left: set[Future[Verdict]] = set(futures)
        while left:
            done, left = wait(left, timeout=0.2)
            for future in done:
                future.result()
            tick()

    def _verdict(self, columns: Mapping[str, Any], is_over: threading.Event) -> Verdict:
        tests, candidate = columns["tests"], columns["candidate"]
        if candidate is None and any(test.kind == "check" for test in tests):
            return Verdict(score=None, note=AMBIGUOUS)
        passed = 0
        for test in tests:
            if self._passes(str(columns["code"]), _called(test, candidate), is_over):
                passed += 1
            elif not self._given.graded:
                return Verdict(score=0.0)
        return Verdict(score=passed / len(tests))

    def _passes(self, code: str, test: Case, is_over: threading.Event) -> bool:
        """Run a test in a new sandbox, so that no state is carried from one test to the next."""
        with self._sandbox(is_over) as sandbox:
            sandbox.load()  # a machine without a sandbox is an error, a program that fails is none
            code = f"{code}\n\n{test.before}" if test.before else code
            question = {"code": code, "kind": test.kind, "test": test.text}
            try:
                [result] = sandbox.write([question], cpu_seconds=self._given.timeout_seconds)
            except UserCodeError:
                return False
        out = result.get("out") if result is not None else None
        return isinstance(out, str) and _is_right(test, out)

    def _sandbox(self, is_over: threading.Event) -> Sandbox:
        def tick() -> None:
            if is_over.is_set():
                raise UserCodeError(f"{self._node}: the run is ending", self._node)

        return Sandbox(
            source_of("programs"),
            function="judge",
            node=self._node,
            timeout_seconds=WAITS * self._given.timeout_seconds,
            memory_mib=self._given.memory_mib,
            tick=tick,
        )

    def close(self) -> None: ...


def _called(test: Case, candidate: str | None) -> Case:
    """A test that defines `check`, with a call added; other tests unchanged."""
    if test.kind != "check":
        return test
    return replace(test, kind="statement", text=f"{test.text}\n\n{CHECK}({candidate})")


def _is_right(test: Case, out: str) -> bool:
    match test.kind:
        case "statement":
            return out == "True"
        case "input":
            return bool(lines_of(out) == test.expected)
    try:
        return bool(ast.literal_eval(out) == test.expected)
    except UNREADABLE:
        return False
