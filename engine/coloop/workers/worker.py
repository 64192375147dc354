"""A process of a pool. It sends what is asked of it to what it holds, one thing at a time, while
another thread may ask how far it is or tell it to give up:

    `Trainer`, `FrozenModel`    weights of a group, which learn or not
    `Generators`                rollout engines with a copy of weights
    `WeightEnds`                where weights go out and come in

Where a pool has several processes, all ranks are asked the same: they write and score the part of
the texts that is theirs, learn together, and hold either parts of weights or the same weights. What
their answers make together says `worker_api`.

It knows token ids, models, optimizers and engines; it does not know rows, edges, phases or events.
"""

import gc
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
from numpy.typing import NDArray

from coloop.algorithms.batch import Pair
from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.data.arrays import Ids, Numbers
from coloop.data.files.marks import Mark, Marks, settle
from coloop.errors import ColoopError
from coloop.runtime.run_files.run_log import log_into
from coloop.spec.graph import LoopSpec
from coloop.spec.heads import Reading
from coloop.spec.model import ComputeDtype
from coloop.spec.paths import apply_overrides
from coloop.workers.answers import Ends
from coloop.workers.frozen_model import FrozenModel
from coloop.workers.generators import CallProgress, Generators
from coloop.workers.initial_weights import Home, InitialWeights
from coloop.workers.messages import (
    DRIVERS_WORD,
    AtOnce,
    Finished,
    LearnReply,
    LearnRequest,
    Observation,
    Poll,
    PromptRequest,
    Reply,
    Sampling,
    Sight,
    TooLong,
)
from coloop.workers.rollout import check_engine
from coloop.workers.rollout_generator import RolloutGenerator
from coloop.workers.settings import HostSettings, compute_with
from coloop.workers.shortage import sized
from coloop.workers.sync import (
    WeightChecksum,
    WeightTransfer,
)
from coloop.workers.sync.checksums import Probe
from coloop.workers.sync.folders import can_use
from coloop.workers.text_scores import score_sides, score_texts
from coloop.workers.trainer import Trainer
from coloop.workers.training import Meeting, Ranks, join, leave, open_meeting
from coloop.workers.weight_ends import WeightEnds
from coloop.workers.worker_api import WorkerApi


class Worker(WorkerApi):
    """One rank of a pool; what its methods do says `WorkerApi`."""

    def __init__(self, settings: HostSettings) -> None:
        if settings.log is not None and settings.log.parent.is_dir():
            log_into(settings.log)
        self._settings = settings
        self._spec = settings.spec
        self._plans = {weights.name: weights for weights in settings.weights}
        self._homes: dict[str, Home] = {}
        self._engines: dict[str, RolloutGenerator] = {}
        self._applied: tuple[dict[str, Any], LoopSpec] = ({}, settings.spec)
        self._ranks = Ranks(rank=settings.rank, size=settings.ranks)
        self._meeting: Meeting | None = None
        self._has_joined = False
        self._process = psutil.Process(os.getpid())
        self._marks = Marks(f"pool {settings.pool} on {platform.node()}")
        self._progress = CallProgress()
        self._generators = Generators(self._engines, self._homes, self._ranks, self._progress)
        self._ends = WeightEnds(settings.spec, self._plans, self._homes, self._engines, self._ranks)

    # --- asked while something else runs

    def poll(self) -> Poll:
        """How far the running call is."""
        done, total, unit = self._progress.now
        memory, held = self._process.memory_info().rss, None
        if self._settings.device == "cpu":
            held = memory
        elif torch.cuda.is_available():
            free, whole = torch.cuda.mem_get_info()
            held = whole - free
        return Poll(
            done=done,
            total=total,
            unit=unit,
            pid=self._process.pid,
            rss_bytes=memory,
            held_bytes=held,
        )

    def interrupt(self) -> None:
        """Give up the running call where that leaves everything as it was before it."""
        self._progress.interrupted.set()

    def close(self) -> None:
        """Give back what engines hold of this process, where it outlives the host, and part from
        the other ranks."""
        self._generators.close()
        self._ends.close()
        if self._has_joined:
            leave()
            self._has_joined = False

    # --- the host's work

    def open_meeting(self, seconds: float) -> int | None:
        is_wanted = any(one.pool == self._settings.pool for one in self._settings.weights)
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
        compute_with(self._settings.threads)
        plans = self._plans
        for weights in plans.values():
            for engine in weights.engines:
                if engine.pool == self._settings.pool:
                    check_engine(engine.engine)
        initial_weights = InitialWeights(
            spec=self._spec,
            plans=plans,
            root=self._settings.root,
            seed=self._settings.seed,
            device=self._settings.device,
            ranks=self._ranks,
        )
        self._homes.update(initial_weights.homes(self._settings.pool))
        for group, weights in plans.items():
            for engine in weights.engines:
                if engine.pool == self._settings.pool:
                    self._engines[group] = initial_weights.engine(group, engine)
                    if weights.is_elsewhere:
                        self._engines[group].build(initial_weights.outline(group), 0)
                    elif group not in self._homes:
                        self._engines[group].build(initial_weights.model(group, self._homes), 0)

    def generate(
        self, group: str, node: str, requests: Sequence[PromptRequest], sampling: Sampling
    ) -> list[Reply]:
        self._begin()
        return self._generators.generate(group, node, requests, sampling)

    def write(
        self,
        group: str,
        node: str,
        requests: Sequence[PromptRequest],
        sampling: Sampling,
        said: Sequence[Observation] = (),
    ) -> Finished:
        before = self._progress.now
        self._begin()
        if not requests:
            self._progress.now = before
        return self._generators.write(group, node, requests, sampling, said, self.poll)

    def step_ends(
        self, group: str, node: str, token_ids: Sequence[Ids], separator: str
    ) -> list[list[int]]:
        self._begin()
        return self._generators.step_ends(group, node, token_ids, separator)

    def score(
        self,
        group: str,
        node: str,
        texts: Sequence[TokenSequence],
        temperature: float,
        reading: Reading = "log_probs",
    ) -> list[Numbers | TooLong]:
        self._begin()
        self._rest()
        home, hooks = self._homes[group], self._progress.hooks
        return score_texts(home, node, texts, temperature, reading, hooks)

    def score_pairs(
        self, group: str, node: str, pairs: Sequence[Pair]
    ) -> list[dict[str, Numbers] | TooLong]:
        self._begin()
        self._rest()
        return score_sides(self._homes[group], node, pairs, self._progress.hooks)

    def lengths(self, group: str, node: str, texts: Sequence[str]) -> list[int]:
        encoder = self._homes[group].weights.encoder(node)
        return [len(encoder.said(text)) for text in texts]

    def stop_writing(self, group: str) -> None:
        self._engines[group].stop_writing()

    def learn(self, order: LearnRequest) -> LearnReply:
        self._begin()
        freed = self._rest()
        home = self._trainer(order.group)
        with sized(home.at_once):
            reply = home.learn(order, self._at(order.overrides), self._progress.hooks)
        return replace(reply, freed_bytes=freed)

    def evaluate(self, order: LearnRequest) -> LearnReply:
        self._begin()
        self._rest()
        home = self._trainer(order.group)
        with sized(home.at_once):
            return home.evaluate(order, self._at(order.overrides), self._progress.hooks)

    def sync(self, group: str) -> Ends | None:
        self._begin()
        return self._ends.sync(group)

    def send(
        self,
        group: str,
        places: Sequence[Path],
        dtype: ComputeDtype | None,
        is_adapter: bool = False,
    ) -> tuple[WeightTransfer | None, WeightChecksum]:
        self._begin()
        return self._ends.send(group, places, dtype, is_adapter)

    def receive(self, group: str, transfer: WeightTransfer, probe: Probe) -> WeightChecksum:
        self._begin()
        return self._ends.receive(group, transfer, probe)

    def invite(
        self, group: str, kind: str, ends: str, round: int, receivers: int, dtype: ComputeDtype
    ) -> tuple[WeightTransfer | None, Probe]:
        self._begin()
        return self._ends.invite(group, kind, ends, round, receivers, dtype)

    def deliver(self, group: str, transfer: WeightTransfer, dtype: ComputeDtype) -> WeightChecksum:
        self._begin()
        return self._ends.deliver(group, transfer, dtype)

    def take(self, group: str, source: str, transfer: WeightTransfer, ema: float) -> WeightChecksum:
        self._begin()
        return self._ends.take(group, source, transfer, ema)

    def own_places(self) -> list[Path]:
        return self._ends.own_places()

    def own_place(self, size: int, version: int) -> Path:
        return self._ends.own_place(size, version)

    def read_part(self, path: Path, start: int, size: int) -> NDArray[np.uint8]:
        return self._ends.read_part(path, start, size)

    def write_part(self, path: Path, start: int, part: NDArray[np.uint8]) -> None:
        self._ends.write_part(path, start, part)

    def forget(self, transfer: WeightTransfer) -> None:
        self._ends.forget(transfer)

    def follow(self, group: str, source: str, ema: float) -> None:
        self._begin()
        self._ends.follow(group, source, ema)

    def follow_folder(self, group: str, source: str, ema: float, folder: str) -> None:
        self._begin()
        self._ends.follow_folder(group, source, ema, folder)

    def can_use(self, folder: Path) -> bool:
        return can_use(folder)

    def reset_optimizer(self, group: str) -> None:
        self._trainer(group).backend.reset_optimizer()

    def has_changed(self, group: str) -> bool:
        return self._trainer(group).has_changed

    def at_once(self, verb: str, group: str) -> AtOnce | None:
        return self._worker(verb, group).at_once()

    def narrow(self, verb: str, group: str, at_once: AtOnce) -> None:
        self._worker(verb, group).narrow(at_once)
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def version(self, group: str) -> int:
        return self._homes[group].weights.version

    def save(self, folder: str, earlier: str | None = None) -> dict[str, Mark]:
        whole = Path(folder)
        if self._settings.device != "cpu":
            self._rest()  # what weights are gathered in has the room of what engines write with
        for name, home in self._homes.items():
            home.save(whole / name, None if earlier is None else Path(earlier) / name)
        if not self._ranks.is_first:
            return {}
        for name in self._homes:
            settle(whole / name)
        paths = (path for name in self._homes for path in sorted((whole / name).rglob("*")))
        marks = self._marks.of(path for path in paths if path.is_file())
        return {path.relative_to(whole).as_posix(): mark for path, mark in marks.items()}

    def see(self, folder: Path) -> Sight:
        told = folder / DRIVERS_WORD
        word = told.read_text(encoding="utf-8") if told.is_file() else None
        if word is not None:
            (folder / self._settings.pool).write_text(word, encoding="utf-8")
        return Sight(machine=platform.node(), word=word)

    def load(self, folder: str) -> None:
        for name, home in self._homes.items():
            home.load(Path(folder) / name)

    # --- inside

    def _begin(self) -> None:
        self._progress.begin()

    def _rest(self) -> int:
        """Engines sleep while others work here; how many bytes that has given back."""
        before = self._held_bytes()
        self._generators.rest()
        return max(before - self._held_bytes(), 0)

    def _held_bytes(self) -> int:
        """Memory that nobody else can use: of the GPU, else of this process."""
        if self._settings.device == "cpu":
            return int(self._process.memory_info().rss)
        free, total = torch.cuda.mem_get_info()
        return int(total - free - torch.cuda.memory_reserved() + torch.cuda.memory_allocated())

    def _worker(self, verb: str, group: str) -> Home | RolloutGenerator:
        """Who does the work of a method."""
        return self._engines[group] if verb == "generate" else self._homes[group]

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
