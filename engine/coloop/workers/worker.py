"""A process of a pool: the homes of weights and of rollout engines that stand in it. It does what
is asked of them, one thing at a time, while another thread may ask how far it is or tell it to give
up.

Where a pool has several processes, all ranks are asked the same: they write and score the part of
the texts that is theirs, learn together, and hold either parts of weights or the same weights. What
their answers make together says `answers`.

It knows token ids, models, optimizers and engines; it does not know rows, edges, phases or events.
"""

import gc
import os
import platform
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
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
from coloop.models import DTYPES, read_adapter, weights_in
from coloop.runtime.run_files.run_log import log_into
from coloop.spec.adapters import stays
from coloop.spec.graph import LoopSpec
from coloop.spec.heads import Reading
from coloop.spec.model import ComputeDtype
from coloop.spec.paths import apply_overrides
from coloop.workers.beginnings import Beginnings, Home
from coloop.workers.frozen_model import FrozenModel
from coloop.workers.heads import renamed, taken_heads
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
from coloop.workers.shares import own_part, own_requests
from coloop.workers.shortage import sized
from coloop.workers.sync import (
    CHANNELS,
    MEETINGS,
    Counted,
    FilesChannel,
    LocalChannel,
    MeetingChannel,
    WeightChannel,
    WeightChecksum,
    WeightTransfer,
)
from coloop.workers.sync.checksums import Part, Probe
from coloop.workers.sync.folders import SHARED_MEMORY, TransferFolders, can_use
from coloop.workers.trainer import Trainer
from coloop.workers.training import Hooks, Meeting, Ranks, join, leave, open_meeting
from coloop.workers.weights import Share


class Worker:
    """See the module."""

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
        self._interrupted = threading.Event()
        self._others = 0  # texts of the running call that other ranks write
        self._places: tuple[int, ...] = ()  # of the requests that are written a moment at a time
        self._progress = (0, 0, "")
        self._process = psutil.Process(os.getpid())
        self._marks = Marks(f"pool {settings.pool} on {platform.node()}")
        self._given: dict[str, Counted] = {}
        """By group, what a meeting was called for."""
        self._met: dict[str, MeetingChannel] = {}
        """Ends of channels that stay together with others."""
        self._own_folders = TransferFolders([SHARED_MEMORY, Path(tempfile.gettempdir())])

    # --- asked while something else runs

    def poll(self) -> Poll:
        """How far the running call is."""
        done, total, unit = self._progress
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
        self._interrupted.set()

    def close(self) -> None:
        """Give back what engines hold of this process, where it outlives the host, and part from
        the other ranks."""
        for home in self._engines.values():
            home.close()
        for channel in self._met.values():
            channel.close()
        if self._has_joined:
            leave()
            self._has_joined = False
        self._own_folders.close()

    # --- the host's work

    def open_meeting(self, seconds: float) -> int | None:
        """The port on which the pool's ranks meet, opened by rank 0; nothing where they need not
        know one another: a rank alone, and engines that write side by side.

        Args:
            seconds: that ranks may take to come.
        """
        is_wanted = any(one.pool == self._settings.pool for one in self._settings.weights)
        if self._ranks.size == 1 or not is_wanted or not self._ranks.is_first:
            return None
        self._meeting = open_meeting(self._ranks.size, timeout_seconds=seconds)
        return self._meeting.port

    def join(self, place: str, seconds: float, wait_seconds: float) -> None:
        """Meet the other ranks of the pool.

        Args:
            place: where rank 0 has opened the meeting.
            seconds: that ranks may take to come.
            wait_seconds: longest wait for one of them later.
        """
        join(
            self._ranks,
            rendezvous=place,
            meeting=self._meeting,
            timeout_seconds=seconds,
            wait_seconds=wait_seconds,
        )
        self._has_joined = True

    def build(self) -> None:
        """Load or make the weights of every home."""
        compute_with(self._settings.threads)
        plans = self._plans
        for weights in plans.values():
            for engine in weights.engines:
                if engine.pool == self._settings.pool:
                    check_engine(engine.engine)
        beginnings = Beginnings(
            spec=self._spec,
            plans=plans,
            root=self._settings.root,
            seed=self._settings.seed,
            device=self._settings.device,
            ranks=self._ranks,
        )
        self._homes = beginnings.homes(self._settings.pool)
        for group, weights in plans.items():
            for engine in weights.engines:
                if engine.pool == self._settings.pool:
                    self._engines[group] = beginnings.engine(group, engine)
                    if weights.is_elsewhere:
                        self._engines[group].build(beginnings.outline(group), 0)
                    elif group not in self._homes:
                        self._engines[group].build(beginnings.model(group, self._homes), 0)

    def generate(
        self, group: str, node: str, requests: Sequence[PromptRequest], sampling: Sampling
    ) -> list[Reply]:
        """What was written to each request, in order. A rank writes its part of the texts and has
        none for what others write to."""
        self._begin()
        home = self._writing(group)
        own = own_requests(requests, sampling.max_new_tokens, self._ranks)
        self._others = _texts_of(requests) - _texts_of(own.values())
        written = home.write(
            node, list(own.values()), sampling, self._rows_progress, self._interrupted.is_set
        )
        replies: list[Reply] = [[] for _ in requests]
        for place, reply in zip(own, written, strict=True):
            replies[place] = reply
        return replies

    def write(
        self,
        group: str,
        node: str,
        requests: Sequence[PromptRequest],
        sampling: Sampling,
        said: Sequence[Observation] = (),
    ) -> Finished:
        """`generate` a moment at a time: begins with these requests, or goes on where there are
        none, until nothing is unfinished. Texts that pause go on when something is said to them.
        Between two calls new weights may come. A rank writes to
        whole requests, so that it knows when a reply is."""
        progress = self._progress
        self._begin()
        home = self._writing(group)
        if requests:
            own = own_requests(requests, sampling.max_new_tokens, self._ranks, is_whole=True)
            self._others = _texts_of(requests) - _texts_of(own.values())
            self._places, begun = tuple(own), list(own.values())
        else:
            self._progress, begun = progress, []
        heard = [
            replace(one, place=self._places.index(one.place))
            for one in said
            if one.place in self._places
        ]
        replies, pauses, unfinished = home.write_on(
            node, begun, sampling, heard, self._rows_progress, self._interrupted.is_set
        )
        return Finished(
            replies=tuple((self._places[place], reply) for place, reply in replies),
            pauses=tuple(replace(one, place=self._places[one.place]) for one in pauses),
            unfinished=unfinished,
            poll=self.poll(),
        )

    def lengths(self, group: str, node: str, texts: Sequence[str]) -> list[int]:
        """Tokens of each text where it stands within another."""
        encoder = self._homes[group].weights.encoder(node)
        return [len(encoder.said(text)) for text in texts]

    def stop_writing(self, group: str) -> None:
        """Forget what `write` has not finished."""
        self._engines[group].stop_writing()

    def score(
        self,
        group: str,
        node: str,
        texts: Sequence[TokenSequence],
        temperature: float,
        reading: Reading = "log_probs",
    ) -> list[Numbers | TooLong]:
        """Log-probs or values of each text's completion tokens, the numbers that a score head says
        of the text, or log-probs of its choices; of one that the model cannot read, how long it
        is."""
        self._begin()
        self._rest()
        home = self._homes[group]
        encoder = home.weights.encoder(node)
        sequences = [encoder.sequence(text) for text in texts]
        refused = home.weights.too_long([len(one.token_ids) for one in sequences])
        fitting = [one for one, bad in zip(sequences, refused, strict=True) if bad is None]
        with sized(home.at_once):
            found = home.score(
                fitting, reading, temperature=temperature, hooks=self._hooks, node=node
            )
        if reading in ("log_probs", "values", "steps"):
            found = [said[one.prompt_length :] for said, one in zip(found, fitting, strict=True)]
        scored = iter(found)
        return [next(scored) if problem is None else problem for problem in refused]

    def score_pairs(
        self, group: str, node: str, pairs: Sequence[Pair]
    ) -> list[dict[str, Numbers] | TooLong]:
        """Log-probs of both sides of each pair; of one that the model cannot read, how long its
        longer side is."""
        sides = [side for pair in pairs for side in (pair.chosen, pair.rejected)]
        scored = self.score(group, node, sides, 1.0)
        return [_both(scored[2 * index], scored[2 * index + 1]) for index in range(len(pairs))]

    def step_ends(
        self, group: str, node: str, token_ids: Sequence[Ids], separator: str
    ) -> list[list[int]]:
        """For each completion the index of the token in which each of its steps ends; a rank says
        it of its part of them."""
        self._begin()
        home = self._homes.get(group)
        encoder = self._engines[group].encoder(node) if home is None else home.weights.encoder(node)
        own = own_part([len(ids) for ids in token_ids], self._ranks)
        return [encoder.step_ends(ids, separator) for ids in token_ids[own]]

    def learn(self, order: LearnRequest) -> LearnReply:
        """One update of a group, while the engines here sleep."""
        self._begin()
        freed = self._rest()
        home = self._trainer(order.group)
        with sized(home.at_once):
            reply = home.learn(order, self._at(order.overrides), self._hooks)
        return replace(reply, freed_bytes=freed)

    def evaluate(self, order: LearnRequest) -> LearnReply:
        """Losses of the loads by the weights as they are."""
        self._begin()
        self._rest()
        home = self._trainer(order.group)
        with sized(home.at_once):
            return home.evaluate(order, self._at(order.overrides), self._hooks)

    def sync(self, group: str) -> tuple[WeightChecksum, WeightChecksum] | None:
        """Bring the group's weights to its engine in this process; what both ends say then. Nothing
        where the engine has this version, or gets its first weights when it is built."""
        self._begin()
        weights, engine = self._homes[group].weights, self._engines[group]
        if engine.version in (None, weights.version):
            return None
        channel, share, has_bits = LocalChannel(), self._pushed(group), self._have_bits(group)
        given = weights.counted(share, engine.dtype)
        transfer = weights.send(channel, engine.dtype, share=share, given=given)
        try:
            received = engine.receive(
                transfer, weights.probe(has_bits=has_bits), channel, part=self._said
            )
        finally:
            given.finish()  # other ranks gather with this one, whatever became of its engine
        return weights.checksum(
            engine.dtype, has_bits=has_bits, given=given, share=share, is_together=True
        ), received

    def send(
        self,
        group: str,
        places: Sequence[Path],
        dtype: ComputeDtype | None,
        is_adapter: bool = False,
    ) -> tuple[WeightTransfer | None, WeightChecksum]:
        """Put the group's weights on their way to another process. Rank 0 sends them; others give
        their part of each.

        Args:
            places: folders that both processes see, the best first.
            dtype: of the engine that gets them; None: as they are held.
            is_adapter: to who stands on the same frozen weights: the adapter is all that it gets.
        """
        self._begin()
        weights, kind = self._homes[group].weights, None if dtype is None else DTYPES[dtype]
        share: Share = "adapter" if is_adapter else "whole"
        if kind is not None:
            share = self._pushed(group)
        given, transfer = weights.counted(share, kind), None
        try:
            if self._ranks.is_first:
                channel = FilesChannel(places)
                transfer = weights.send(channel, kind, share=share, given=given)
        finally:
            given.finish()
        if kind is None:
            return transfer, WeightChecksum(version=weights.version, fingerprint=given.fingerprint)
        has_bits = self._have_bits(group)
        return transfer, weights.checksum(kind, has_bits=has_bits, given=given, share=share)

    def receive(self, group: str, transfer: WeightTransfer, probe: Probe) -> WeightChecksum:
        """Bring weights that came from another process to the group's engine here; what it holds
        then."""
        self._begin()
        channel = self._channel(transfer.channel)
        return self._engines[group].receive(transfer, probe, channel, part=self._said)

    def invite(
        self, group: str, kind: str, ends: str, round: int, receivers: int, dtype: ComputeDtype
    ) -> tuple[WeightTransfer | None, Probe]:
        """Say where the group's weights will be given to other processes, by `deliver` here and
        `receive` there at the same time, and what who receives is to score.

        Args:
            kind: of the channel, one of `MEETINGS`.
            ends: name of all who meet.
            round: of their meetings; another one where a process is new.
            receivers: processes that will receive.
            dtype: of the engines that get them.
        """
        self._begin()
        weights = self._homes[group].weights
        probe = weights.probe(has_bits=self._have_bits(group))
        self._given[group] = weights.counted("words", DTYPES[dtype])
        if not self._ranks.is_first:
            return None, probe
        channel = self._meeting_channel(kind)
        channel.invite(ends, round, receivers)
        given = self._given[group]
        return weights.send(channel, DTYPES[dtype], share="words", given=given), probe

    def deliver(self, group: str, transfer: WeightTransfer, dtype: ComputeDtype) -> WeightChecksum:
        """Give what `invite` has announced; rank 0 does, others give their part of each weight.
        What the receivers must agree with."""
        self._begin()
        weights, given = self._homes[group].weights, self._given.pop(group)
        try:
            if self._ranks.is_first:
                self._meeting_channel(transfer.channel).deliver(transfer)
        finally:
            given.finish()
        has_bits = self._have_bits(group)
        return weights.checksum(DTYPES[dtype], has_bits=has_bits, given=given, share="words")

    def take(self, group: str, source: str, transfer: WeightTransfer, ema: float) -> WeightChecksum:
        """Weights that came from another process in place of a group's own; what came."""
        self._begin()
        given = Counted(self._channel(transfer.channel).receive(transfer))
        self._take(group, source, given, ema)
        return WeightChecksum(version=transfer.version, fingerprint=given.fingerprint)

    def own_places(self) -> list[Path]:
        """Folders of this process for weights that the driver carries, the best first."""
        return self._own_folders.paths

    def own_place(self, size: int, version: int) -> Path:
        """The first of them with room for so many bytes of a version."""
        return FilesChannel(self.own_places()).place_for(size, version)

    def read_part(self, path: Path, start: int, size: int) -> NDArray[np.uint8]:
        """At most so many bytes of a file of this machine, from there on."""
        return np.fromfile(path, dtype=np.uint8, count=size, offset=start)

    def write_part(self, path: Path, start: int, part: NDArray[np.uint8]) -> None:
        """Bytes of a file of this machine, from there on; rank 0 writes for all."""
        if not self._ranks.is_first:
            return
        path.parent.mkdir(exist_ok=True)
        with path.open("r+b" if start else "wb") as file:
            file.seek(start)
            file.write(part.data)

    def forget(self, transfer: WeightTransfer) -> None:
        """Nobody wants a transfer any more that lies on this machine."""
        CHANNELS[transfer.channel]().forget(transfer)

    def can_use(self, folder: Path) -> bool:
        """Whether weights can come and go through a folder of the run."""
        return can_use(folder)

    def follow(self, group: str, source: str, ema: float) -> None:
        """The weights of another group of this process in place of a group's own."""
        self._begin()
        channel = LocalChannel()
        share: Share = "adapter" if self._plans[group].follows_adapter else "whole"
        transfer = self._homes[source].weights.send(channel, share=share)
        self._take(group, source, channel.receive(transfer), ema)

    def follow_folder(self, group: str, source: str, ema: float, folder: str) -> None:
        """The weights of another group, as a checkpoint folder has them, in place of a group's
        own."""
        self._begin()
        if self._plans[group].follows_adapter:
            given: Iterable[tuple[str, torch.Tensor]] = read_adapter(Path(folder)).items()
        else:
            given = weights_in(Path(folder))
        self._take(group, source, given, ema)

    def _take(
        self, group: str, source: str, given: Iterable[tuple[str, torch.Tensor]], ema: float
    ) -> None:
        """Weights of another group in place of a group's own, each node's score head as its own."""
        own, theirs = self._plans[group].members, self._plans[source].members
        names = taken_heads(self._spec, group, own, theirs)
        self._homes[group].weights.take(renamed(given, names), ema=ema, source=source)

    def reset_optimizer(self, group: str) -> None:
        self._trainer(group).backend.reset_optimizer()

    def has_changed(self, group: str) -> bool:
        """Whether the group's last order to learn changed its weights; of one that broke off as
        well."""
        return self._trainer(group).has_changed

    def at_once(self, verb: str, group: str) -> AtOnce | None:
        """What the last call of this method held at once for a group; None where less cannot be
        asked."""
        return self._worker(verb, group).at_once()

    def narrow(self, verb: str, group: str, at_once: AtOnce) -> None:
        """No more at once in such calls from here on; memory that is free is given back."""
        self._worker(verb, group).narrow(at_once)
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def version(self, group: str) -> int:
        return self._homes[group].weights.version

    def save(self, folder: str, earlier: str | None = None) -> dict[str, Mark]:
        """Each group's weights in Hugging Face format, and what its trainer needs to go on; the
        mark of each file, by its path in the folder. Rank 0 writes for all.

        Args:
            earlier: a folder that was saved before; what it has already is not written again.
        """
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
        """What this process sees of a folder in which the driver has left its word; where it sees
        that, it leaves its own."""
        told = folder / DRIVERS_WORD
        word = told.read_text(encoding="utf-8") if told.is_file() else None
        if word is not None:
            (folder / self._settings.pool).write_text(word, encoding="utf-8")
        return Sight(machine=platform.node(), word=word)

    def load(self, folder: str) -> None:
        """What `save` wrote."""
        for name, home in self._homes.items():
            home.load(Path(folder) / name)

    # --- inside

    def _begin(self) -> None:
        self._interrupted.clear()
        self._progress = (0, 0, "")

    def _channel(self, kind: str) -> WeightChannel:
        """An end of a channel; of those that meet others, the one of this process."""
        return self._meeting_channel(kind) if kind in MEETINGS else CHANNELS[kind]()

    def _meeting_channel(self, kind: str) -> MeetingChannel:
        if kind not in self._met:
            self._met[kind] = MEETINGS[kind]()
        return self._met[kind]

    def _rest(self) -> int:
        """Engines sleep while others work here; how many bytes that has given back."""
        before = self._held_bytes()
        for home in self._engines.values():
            home.rest()
        return max(before - self._held_bytes(), 0)

    def _held_bytes(self) -> int:
        """Memory that nobody else can use: of the GPU, else of this process."""
        if self._settings.device == "cpu":
            return int(self._process.memory_info().rss)
        free, total = torch.cuda.mem_get_info()
        return int(total - free - torch.cuda.memory_reserved() + torch.cuda.memory_allocated())

    @property
    def _hooks(self) -> Hooks:
        return Hooks(progress=self._count_rows, should_stop=self._interrupted.is_set)

    def _pushed(self, group: str) -> Share:
        """What an engine wants of a group: where frozen weights stay as they are and every engine
        can say what it holds, those that the adapter changes."""
        plan = self._plans[group]
        can_keep = plan.base is not None and self._have_bits(group)
        return "moved" if can_keep and stays(self._spec, group) else "words"

    @property
    def _said(self) -> Part:
        """What this rank says of what its engine got: rank 0 all, others their bits, which must be
        those of rank 0."""
        return "all" if self._ranks.is_first else "bits"

    def _have_bits(self, group: str) -> bool:
        """Whether all engines of a group tell the bits that they hold."""
        return all(one.engine == "torch" for one in self._plans[group].engines)

    def _worker(self, verb: str, group: str) -> Home | RolloutGenerator:
        """Who does the work of a method."""
        return self._engines[group] if verb == "generate" else self._homes[group]

    def _trainer(self, group: str) -> Trainer:
        home = self._homes[group]
        if isinstance(home, FrozenModel):
            raise ColoopError(f"weights {group} are frozen: they have no trainer")
        return home

    def _writing(self, group: str) -> RolloutGenerator:
        """The home of a group's engine, which is built here where nothing was written yet."""
        home = self._engines[group]
        if home.version is None:
            weights = self._homes[group].weights
            home.build(weights.whole(home.dtype), weights.version)
        return home

    def _at(self, overrides: Mapping[str, Any]) -> LoopSpec:
        values = dict(overrides)
        if not values:
            return self._spec
        if self._applied[0] != values:
            self._applied = (values, apply_overrides(self._spec, values))
        return self._applied[1]

    def _rows_progress(self, *, rows_done: int, rows_total: int, tokens_done: int) -> None:
        del tokens_done
        self._progress = (rows_done, rows_total + self._others, "rows")

    def _count_rows(self, done: int, total: int) -> None:
        self._progress = (done, total, "rows")


def _both(chosen: Numbers | TooLong, rejected: Numbers | TooLong) -> dict[str, Numbers] | TooLong:
    if isinstance(chosen, TooLong) or isinstance(rejected, TooLong):
        problems = [side for side in (chosen, rejected) if isinstance(side, TooLong)]
        return max(problems, key=lambda one: one.tokens)
    return {"chosen": chosen, "rejected": rejected}


def _texts_of(requests: Iterable[PromptRequest]) -> int:
    """Texts that requests ask for."""
    return sum(len(one.seeds) for one in requests)
