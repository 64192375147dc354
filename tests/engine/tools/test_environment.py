"""Environments: an instance for each text, a process for many, and what goes wrong in them."""

from collections.abc import Iterator
from typing import Any

import pytest

from coloop.data.tools.bridges import instances
from coloop.data.tools.environment import EnvironmentTool
from coloop.data.tools.instances import UserEnvironment
from coloop.data.tools.proof import ProofEnvironment, State
from coloop.data.tools.protocol import Caller, ToolFailure
from coloop.errors import UserCodeError
from coloop.sandbox.code_files import CodeFile

CODE = """
import random

class Environment:
    def reset(self, row):
        self.target = int(row["answer"])
        self.seen = []
        return f"guess {random.randrange(10)}:"

    def step(self, text):
        if text == "hang":
            while True: pass
        if text == "break":
            raise RuntimeError("broken")
        if text == "odd":
            return {"observation": 3}
        self.seen.append(text)
        right = text == str(self.target)
        return {"observation": " ".join(self.seen), "reward": len(self.seen), "score": float(right),
                "done": right}
"""


def go_on() -> None: ...


def caller(answer: int = 7, seed: int = 1) -> Caller:
    return Caller(columns={"answer": str(answer)}, seed=seed, shared_seed=5)


def made(code: str, seconds: float) -> UserEnvironment:
    return UserEnvironment("desk", instances(CodeFile(code, {})), seconds)


@pytest.fixture
def tool() -> Iterator[EnvironmentTool]:
    tool = EnvironmentTool(made(CODE, 0.5))
    yield tool
    tool.close()


def test_texts_have_instances_of_their_own(tool: EnvironmentTool) -> None:
    first, second = tool.open(caller(7)), tool.open(caller(8))

    assert first.answer({"text": "1"}, go_on).value == "1"
    assert second.answer({"text": "2"}, go_on).value == "2"
    last = first.answer({"text": "7"}, go_on)

    assert (last.value, last.is_last) == ("1 7", True)
    assert first.earned() == {"reward": 3.0, "score": 1.0}
    assert second.earned() == {"reward": 1.0, "score": 0.0}


def test_all_texts_of_a_row_begin_with_the_same_prompt(tool: EnvironmentTool) -> None:
    assert tool.prompt(caller(seed=1), go_on) == tool.prompt(caller(seed=2), go_on)


def test_instances_outlive_the_process_that_another_one_has_ended(tool: EnvironmentTool) -> None:
    sessions = [tool.open(caller(seed=seed)) for seed in range(5)]  # the first and the last
    for session in sessions:
        session.answer({"text": "1"}, go_on)

    with pytest.raises(ToolFailure, match=r"did not answer within 0\.5 seconds"):
        sessions[0].answer({"text": "hang"}, go_on)

    assert [session.answer({"text": "2"}, go_on).value for session in sessions] == ["1 2"] * 5


@pytest.mark.parametrize(
    ("text", "reason"),
    [("break", r"RuntimeError: broken"), ("odd", "an `observation` that is not a text")],
)
def test_what_a_step_does_wrong_is_told(tool: EnvironmentTool, text: str, reason: str) -> None:
    session = tool.open(caller())

    with pytest.raises(ToolFailure, match=reason):
        session.answer({"text": text}, go_on)

    assert session.answer({"text": "1"}, go_on).value == "1"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("'text'", "returned str, expected a dict"),
        ("{'reward': 'much'}", "a `reward` that is not a number"),
        ("{'score': float('inf')}", "the number inf"),
        ("{'done': 1}", "`done` that is neither"),
        ("{'observation': 'x' * 20_000_000}", "more than"),
        ("{'observation': self}", "a value of type Environment"),
    ],
)
def test_a_step_that_gives_something_else_is_told(said: str, reason: str) -> None:
    code = "class Environment:\n  def reset(self, row): return ''"
    code += f"\n  def step(self, text): return {said}"
    tool = EnvironmentTool(made(code, 5.0))

    with pytest.raises(ToolFailure, match=reason):
        tool.open(caller()).answer({"text": "1"}, go_on)
    tool.close()


def test_code_that_cannot_be_loaded_is_an_error_at_once() -> None:
    environment = made("import nothing_of_the_kind", 5.0)

    with pytest.raises(UserCodeError, match=r"desk.*nothing_of_the_kind"):
        environment.check()
    environment.close()


def theorem(text: str) -> list[str]:
    return [str(state) for state in State.read("a, a>b, ab>c |- c").after(text)]


def test_proofs_move_forward_and_backward() -> None:
    assert theorem("b") == ["a, b, a>b, ab>c |- c"]
    assert theorem("ab>c") == ["a, a>b, ab>c |- b"]
    assert [str(one) for one in State.read("x, ab>c |- c").after("ab>c")] == [
        "x, ab>c |- a",
        "x, ab>c |- b",
    ]
    assert State.read("a, a>b |- b").after("b") == []


@pytest.mark.parametrize("action", ["c", "", "z", "a>b", "b>c", "b c"])
def test_an_action_that_does_not_follow_leads_nowhere(action: str) -> None:
    with pytest.raises(ToolFailure, match=r"follow|not a rule"):
        theorem(action)


def test_the_proof_environment_is_a_tool() -> None:
    tool = EnvironmentTool(ProofEnvironment())
    row: dict[str, Any] = {"prompt": "a, a>b, ab>c |- c"}
    session = tool.open(Caller(columns=row, seed=0, shared_seed=0))

    assert tool.moves("a, a>b |- b", "b", 0, go_on) == []
    assert session.answer({"text": "b"}, go_on).value == "\na, b, a>b, ab>c |- c\n"
    assert session.answer({"text": "c"}, go_on).is_last
    assert session.earned() == {"reward": 1.0, "score": 1.0}


def test_kernel_and_task_agree_on_proofs() -> None:
    from coloop.data.tasks.proof import Theorem, check_proof

    for index in range(40):
        made = Theorem(index, 3)
        state, proof = State.read(made.text(made.facts)), " ".join(made.proof)
        session = EnvironmentTool(ProofEnvironment()).open(
            Caller(columns={"prompt": str(state)}, seed=0, shared_seed=0)
        )
        assert session.answer({"text": proof}, go_on).is_last
        assert check_proof({"prompt": made.text(made.facts)}, proof) == 1.0
