"""A process of a pool. It runs one call at a time, while another thread may ask for its progress or
tell it to give up:

    `Trainer`, `FrozenModel`    weights of a group, which learn or not
    `Generators`                rollout engines with a copy of weights
    `WeightEnds`                sends and receives weights

All ranks of a pool get the same calls; `worker_api` says how their answers are merged. It knows
token ids, models, optimizers and engines, but no rows, edges, phases or events.
"""

import gc
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from coloop.algorithms.batch import Pair
from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.data.arrays import Numbers
from coloop.data.distributions import Teacher, Words
from coloop.data.files.marks import Mark, Marks, settle
from coloop.errors import ColoopError
from coloop.runtime.run_files.run_log import log_into
from coloop.spec.graph import LoopSpec
from coloop.spec.heads import Reading
from coloop.spec.paths import apply_overrides
from coloop.workers.frozen_model import FrozenModel
from coloop.workers.generators import Generators
from coloop.workers.initial_weights import InitialWeights
from coloop.workers.messages import DRIVERS_WORD, AtOnce, LearnReply, LearnRequest, Sight, TooLong
from coloop.workers.rollout import check_engine
from coloop.workers.rollout_generator import RolloutGenerator
from coloop.workers.settings import HostSettings, set_cpu_threads
from coloop.workers.shortage import sized
from coloop.workers.trainer import Trainer
from coloop.workers.training import leave
from coloop.workers.training.ranks import Meeting, join, open_meeting
from coloop.workers.training.scorer import ScoresTexts
from coloop.workers.weight_ends import WeightEnds


class Worker(Generators, WeightEnds):
    def __init__(self, settings: HostSettings) -> None:
        if settings.log is not None and settings.log.parent.is_dir():
            log_into(settings.log)
        super().__init__(settings)
        self._applied: tuple[dict[str, Any], LoopSpec] = ({}, settings.spec)
        self._meeting: Meeting | None = None
        self._has_joined = False
        self._marks = Marks(f"pool {settings.pool} on {platform.node()}")

    def close(self) -> None:
        """Free what engines hold beyond this worker's life, and leave the other ranks."""
        for generator in self._engines.values():
            generator.close()
        self._close_ends()
        if self._has_joined:
            leave()
            self._has_joined = False

    def open_meeting(self, seconds: float) -> int | None:
        pool = self._settings.pool
        is_wanted = any(
            plan.pool == pool
            or any(engine.pool == pool and engine.tensor_parallel > 1 for engine in plan.engines)
            for plan in self._settings.weights
        )
        if self._ranks.size == 1 or not is_wanted or not self._ranks.is_first:
            return None
        self._meeting = open_meeting(self._ranks.size, timeout_seconds=seconds)
        return self._meeting.port

    def join(self, place: str, seconds: float, wait_seconds: float) -> None:
        join(
            self._ranks,
            rendezvous=place,
            meeting=self._meeting,
            timeout_seconds=seconds,
            wait_seconds=wait_seconds,
        )
        self._has_joined = True

    def build(self) -> None:
        settings = self._settings
        set_cpu_threads(settings.threads)
        engines = [
            (group, engine)
            for group, weights in self._plans.items()
            for engine in weights.engines
            if engine.pool == settings.pool
        ]
        for _, engine in engines:
            check_engine(engine.engine)
        initial_weights = InitialWeights(
            spec=self._spec,
            plans=self._plans,
            root=settings.root,
            seed=settings.seed,
            device=settings.device,
            ranks=self._ranks,
        )
        self._homes.update(initial_weights.homes(settings.pool))
        for group, engine in engines:
            self._engines[group] = initial_weights.engine(group, engine)
            if self._plans[group].is_elsewhere:
                self._engines[group].build(initial_weights.outline(group), 0)
            elif group not in self._homes:
                self._engines[group].build(initial_weights.model(group, self._homes), 0)

    def score(
        self,
        group: str,
        node: str,
        texts: Sequence[TokenSequence],
        temperature: float,
        reading: Reading = "log_probs",
    ) -> list[Numbers | TooLong]:
        home, fitting, refused = self._to_read(group, node, texts)
        hooks = self._progress.hooks
        with sized(home.scorer.at_once):
            numbers = home.scorer.score(
                fitting, reading, temperature=temperature, hooks=hooks, node=node
            )
        if reading in ("log_probs", "values", "steps"):
            numbers = [
                row[sequence.prompt_length :]
                for row, sequence in zip(numbers, fitting, strict=True)
            ]
        scored = iter(numbers)
        return [next(scored) if problem is None else problem for problem in refused]

    def tokenizer(self, group: str, node: str) -> tuple[str, int]:
        encoder = self._homes[group].weights.encoder(node)
        return encoder.mark, encoder.size

    def distributions(
        self,
        group: str,
        node: str,
        texts: Sequence[TokenSequence],
        temperature: float,
        words: Words,
    ) -> list[Teacher | TooLong]:
        home, fitting, refused = self._to_read(group, node, texts)
        hooks = self._progress.hooks
        with sized(home.scorer.at_once):
            said = home.scorer.distributions(fitting, words, temperature=temperature, hooks=hooks)
        told = iter(replace(text, node=node) for text in said)
        return [next(told) if problem is None else problem for problem in refused]

    def _to_read(
        self, group: str, node: str, texts: Sequence[TokenSequence]
    ) -> tuple[Trainer | FrozenModel, list[TokenSequence], list[TooLong | None]]:
        """The home of the weights, the texts that fit the model, and for each text why it does
        not."""
        self._begin()
        self._rest()
        home = self._homes[group]
        encoder = home.weights.encoder(node)
        sequences = [encoder.sequence(text) for text in texts]
        refused = home.weights.too_long([len(sequence.token_ids) for sequence in sequences])
        fitting = [
            sequence
            for sequence, problem in zip(sequences, refused, strict=True)
            if problem is None
        ]
        return home, fitting, refused

    def score_pairs(
        self, group: str, node: str, pairs: Sequence[Pair]
    ) -> list[dict[str, Numbers] | TooLong]:
        sides = [side for pair in pairs for side in (pair.chosen, pair.rejected)]
        scored = self.score(group, node, sides, 1.0)
        return [_both(*scored[start : start + 2]) for start in range(0, len(scored), 2)]

    def lengths(self, group: str, node: str, texts: Sequence[str]) -> list[int]:
        encoder = self._homes[group].weights.encoder(node)
        return [len(encoder.said(text)) for text in texts]

    def learn(self, order: LearnRequest) -> LearnReply:
        self._begin()
        freed = self._rest()
        home = self._trainer(order.group)
        with sized(home.scorer.at_once):
            reply = home.learn(order, self._at(order.overrides), self._progress.hooks)
        return replace(reply, freed_bytes=freed)

    def evaluate(self, order: LearnRequest) -> LearnReply:
        self._begin()
        self._rest()
        home = self._trainer(order.group)
        with sized(home.scorer.at_once):
            return home.evaluate(order, self._at(order.overrides), self._progress.hooks)

    def reset_optimizer(self, group: str) -> None:
        self._trainer(group).backend.reset_optimizer()

    def has_changed(self, group: str) -> bool:
        return self._trainer(group).has_changed

    def at_once(self, verb: str, group: str) -> AtOnce | None:
        return self._in_charge(verb, group).at_once()

    def narrow(self, verb: str, group: str, at_once: AtOnce) -> None:
        self._in_charge(verb, group).narrow(at_once)
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def version(self, group: str) -> int:
        return self._homes[group].weights.version

    def see(self, folder: Path) -> Sight:
        path = folder / DRIVERS_WORD
        word = path.read_text(encoding="utf-8") if path.is_file() else None
        if word is not None:
            (folder / self._settings.pool).write_text(word, encoding="utf-8")
        return Sight(machine=platform.node(), word=word)

    def save(self, folder: str, earlier: str | None = None) -> dict[str, Mark]:
        whole = Path(folder)
        if self._settings.device != "cpu":
            self._rest()  # weights are gathered in the memory that engines generate with
        for name, home in self._homes.items():
            home.save(whole / name, None if earlier is None else Path(earlier) / name)
        if not self._ranks.is_first:
            return {}
        for name in self._homes:
            settle(whole / name)
        paths = (path for name in self._homes for path in sorted((whole / name).rglob("*")))
        marks = self._marks.of(path for path in paths if path.is_file())
        return {path.relative_to(whole).as_posix(): mark for path, mark in marks.items()}

    def load(self, folder: str) -> None:
        for name, home in self._homes.items():
            home.load(Path(folder) / name)

    def _rest(self) -> int:
        before = self._held_bytes()
        for generator in self._engines.values():
            generator.rest()
        return max(before - self._held_bytes(), 0)

    def _held_bytes(self) -> int:
        """Memory that nobody else can use: of the GPU, else of this process."""
        if self._settings.device == "cpu":
            return int(self._process.memory_info().rss)
        free, total = torch.cuda.mem_get_info()
        return int(total - free - torch.cuda.memory_reserved() + torch.cuda.memory_allocated())

    def _in_charge(self, verb: str, group: str) -> ScoresTexts | RolloutGenerator:
        return self._engines[group] if verb == "generate" else self._homes[group].scorer

    def _trainer(self, group: str) -> Trainer:
        home = self._homes[group]
        if isinstance(home, FrozenModel):
            raise ColoopError(f"weights {group} are frozen: they have no trainer")
        return home

    def _at(self, overrides: Mapping[str, Any]) -> LoopSpec:
        values = dict(overrides)
        if not values:
            return self._spec
        if self._applied[0] != values:
            self._applied = (values, apply_overrides(self._spec, values))
        return self._applied[1]


def _both(chosen: Numbers | TooLong, rejected: Numbers | TooLong) -> dict[str, Numbers] | TooLong:
    if isinstance(chosen, TooLong) or isinstance(rejected, TooLong):
        problems = [side for side in (chosen, rejected) if isinstance(side, TooLong)]
        return max(problems, key=lambda problem: problem.tokens)
    return {"chosen": chosen, "rejected": rejected}
