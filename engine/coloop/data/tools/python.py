"""Python: code that a policy writes, run in the sandbox, a session and a process for each text.

The process is started when the text first calls, keeps its variables from call to call, and ends
with the text. It is never shared: what one text does, no other can see. Where code is too slow,
dies or takes too much memory its process is gone, and the policy is told that its variables are.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from coloop.data.tools.protocol import Answered, Caller, Tick, ToolFailure
from coloop.errors import UserCodeError
from coloop.sandbox.process import Sandbox

SOURCE: Final = (Path(__file__).parent / "inside" / "session.py").read_text(encoding="utf-8")


class PythonTool:
    def __init__(self, node: str, timeout_seconds: float) -> None:
        self._node = node
        self._timeout_seconds = timeout_seconds
        with Sandbox(SOURCE, function="run", node=node) as sandbox:
            sandbox.load()  # fails at once if this machine has no sandbox

    def open(self, caller: Caller) -> "PythonSession":
        return PythonSession(self._node, self._timeout_seconds, caller.seed)

    def close(self) -> None: ...


class PythonSession:
    def __init__(self, node: str, timeout_seconds: float, seed: int) -> None:
        self._sandbox = Sandbox(SOURCE, function="run", node=node, timeout_seconds=timeout_seconds)
        self._seed = seed
        self._calls = 0

    def answer(self, arguments: Mapping[str, str], tick: Tick) -> Answered:
        """What the code prints, then the value of its last line."""
        self._calls += 1
        seed = (self._seed + self._calls) % 2**31
        code = arguments.get("code", "")
        had_variables = self._sandbox.process_id is not None
        try:
            with self._sandbox.held(tick):
                [said] = self._sandbox.write([{"code": code}], seeds=[seed])
        except UserCodeError as error:
            raise ToolFailure(self._what_failed(error, had_variables)) from None
        shown = said.get("shown") if said is not None else None
        text = "".join((self._sandbox.printed, shown if isinstance(shown, str) else ""))
        if said is None or said.get("failed") is not False:
            raise ToolFailure(text)
        return Answered(value=text.rstrip("\n"))

    def _what_failed(self, error: UserCodeError, had_variables: bool) -> str:
        reason = self._sandbox.bare(error)
        is_lost = had_variables and self._sandbox.process_id is None
        return f"{reason}; all variables are gone" if is_lost else reason

    def earned(self) -> Mapping[str, float]:
        return {}

    def close(self) -> None:
        self._sandbox.close()
