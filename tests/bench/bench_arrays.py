"""What the driver spends on the way of tokens: reply, reference, reward, credit, learn order.

One step of GRPO on scripted hosts that stand for processes of their own: all that goes to them and
comes from them is packed, copied to other memory as an object store does, and unpacked. What is
done on their side is not counted. Seconds are those of the processor. The share is that of the step
which the estimate predicts for the 7B preset, with as many tokens as the preset writes in one.
"""

import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from tests.bench.carriage import carried
from tests.bench.results import Goal, Result, Table
from tests.engine.roles.conftest import Bench, ScriptedHosts

from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.data.tables import Tokens
from coloop.plan.cost import estimate
from coloop.spec.io import from_dict, parse
from coloop.spec.presets import load_loop_text
from coloop.workers.messages import (
    Answer,
    HandOn,
    LearnReply,
    LearnRequest,
    PromptRequest,
    Sampling,
)
from coloop.workers.packing import Packed, pack, unpack

PRESET = "grpo-qwen2.5-7b-8xH100"
PROMPTS, SIBLINGS, PROMPT_TOKENS = 64, 8, 256
LENGTHS = (128, 2048, 8192)
"""Tokens of each completion."""
COUNTED = 2048
ROUNDS = 5
MOST_SHARE = 0.03
ADVANTAGES = {
    "a row": {"coefficient": 0.001, "estimator": "k3"},
    "a token": {"coefficient": 0.001, "estimator": "k1", "into": "reward"},
}
"""KL that leaves one advantage for each row, or one for each token."""


class FarHosts(ScriptedHosts):
    """Hosts in other processes, whose own work takes no time."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self._length = length
        self._draw = np.random.default_rng(0)
        self.away_seconds = 0.0

    @contextmanager
    def _away(self) -> Iterator[None]:
        began = time.process_time()
        yield
        self.away_seconds += time.process_time() - began

    def _asked(self, *arguments: Any) -> Any:
        """The arguments as they arrive there; packing them is the driver's work."""
        packed = pack(arguments)
        with self._away():
            return unpack(carried(packed))

    def _answered(self, reply: Any) -> Packed:
        return carried(pack(reply))

    def generate(
        self,
        group: str,
        node: str,
        requests: Sequence[PromptRequest],
        sampling: Sampling,
        hand_on: HandOn | None = None,
        answer: Answer | None = None,
    ) -> Any:
        _, _, asked, _ = self._asked(group, node, requests, sampling)
        with self._away():
            packed = self._answered([[self._text() for _ in one.seeds] for one in asked])
        return unpack(packed)

    def _text(self) -> Tokens:
        return Tokens(
            prompt_ids=np.arange(PROMPT_TOKENS),
            token_ids=self._draw.integers(0, 150_000, self._length),
            loss_mask=np.ones(self._length, dtype=np.bool_),
            log_probs=self._draw.standard_normal(self._length, dtype=np.float32),
            text="four" * self._length,
        )

    def score(
        self, group: str, node: str, texts: Sequence[TokenSequence], temperature: float
    ) -> Any:
        _, _, asked, _ = self._asked(group, node, texts, temperature)
        with self._away():
            sizes = [len(one.token_ids) - one.prompt_length for one in asked]
            found = [self._draw.standard_normal(size, dtype=np.float32) for size in sizes]
            packed = self._answered(found)
        return unpack(packed)

    def learn(self, order: LearnRequest) -> LearnReply:
        self._asked(order)
        return super().learn(order)


def run() -> Result:
    seconds = {
        (length, what): _seconds(length, kl)
        for length in LENGTHS
        for what, kl in ADVANTAGES.items()
    }
    rows = PROMPTS * SIBLINGS
    millions = {length: rows * length / 1e6 for length in LENGTHS}
    per_million = max(seconds[COUNTED, what] for what in ADVANTAGES) / millions[COUNTED]
    step, tokens = _preset_step()
    share = per_million * tokens / 1e6 / step
    return Result(
        title="Driver's CPU time for tokens",
        tables=(
            Table(
                title=f"{rows} rows; CPU seconds of the driver in a step, median of {ROUNDS}.",
                head=("tokens a row", "advantage for each", "seconds", "per million tokens"),
                rows=tuple(
                    (str(length), what, f"{value:.3f}", f"{value / millions[length]:.3f}")
                    for (length, what), value in seconds.items()
                ),
            ),
        ),
        goals=(
            Goal(
                wanted=f"driver's share of a step of {PRESET} ({step:.0f} s, {tokens:,} tokens) "
                f"below {MOST_SHARE:.0%}",
                found=f"{100 * share:.2f} %",
                is_reached=share < MOST_SHARE,
            ),
        ),
        data={f"{length} {what}": value for (length, what), value in seconds.items()},
    )


def _seconds(length: int, kl: dict[str, Any]) -> float:
    """Of the driver in one step."""
    with tempfile.TemporaryDirectory() as folder:
        loop = _loop(length, kl, Path(folder))
        try:
            return statistics.median(_step(loop, length) for _ in range(ROUNDS))
        finally:
            loop.close()


def _step(loop: Bench, length: int) -> float:
    hosts = FarHosts(length)
    loop.stand(hosts=hosts)
    began = time.process_time()
    loop.step()
    found = time.process_time() - began - hosts.away_seconds
    assert loop.outcomes["actor.learn"].samples
    return found


def _loop(length: int, kl: dict[str, Any], root: Path) -> Bench:
    prompts = [{"prompt": f"question {place}"} for place in range(PROMPTS)]
    model = {"type": "scratch", "architecture": "tiny-qwen3"}
    parsed = from_dict(
        {
            "coloop": 1,
            "name": "arrays",
            "nodes": {
                "questions": {
                    "kind": "dataset",
                    "source": {"type": "inline", "rows": prompts},
                    "rows_per_step": PROMPTS,
                },
                "actor": {
                    "kind": "actor",
                    "model": model,
                    "rollout": {"completions_per_prompt": SIBLINGS, "max_new_tokens": length},
                    "algorithm": {"name": "grpo", "kl": kl},
                },
                "start": {"kind": "reference", "model": {"type": "snapshot", "of": "actor"}},
                "short": {
                    "kind": "reward",
                    "source": {"type": "builtin", "name": "length", "max": length},
                },
            },
            "edges": [
                "questions.rows -> actor.prompts",
                "actor.rollouts -> start.rollouts",
                "actor.rollouts -> short.rollouts",
                "short.scores -> actor.rewards",
                "start.log_probs -> actor.reference",
            ],
            "schedule": {"steps": 9},
            "hardware": {"preset": "cpu"},
        }
    )
    assert parsed.spec is not None, [one.describe() for one in parsed.diagnostics]
    return Bench(parsed.spec, root)


def _preset_step() -> tuple[float, int]:
    """Seconds of the preset's step as estimated, and the most tokens that it writes in one."""
    spec = parse(load_loop_text(PRESET)).spec
    assert spec is not None
    rollout = spec.nodes["actor"].rollout  # type: ignore[union-attr]
    rows = spec.nodes["questions"].rows_per_step  # type: ignore[union-attr]
    tokens = rows * rollout.completions_per_prompt * rollout.max_new_tokens
    return estimate(spec).step_seconds, tokens
