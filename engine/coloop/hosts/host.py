"""A process of a pool: the homes of weights and of rollout engines that stand in it. It does what
is asked of them, one thing at a time, while another thread may ask how far it is or tell it to give
up.

It knows token ids, models, optimizers and engines; it does not know rows, edges, phases or events.
The spec reaches it once; overrides of the moment come with each update.
"""

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch

from coloop.arrays import Ids, Numbers, ids_of
from coloop.batch import Pair, Unit
from coloop.batch import Sequence as TokenSequence
from coloop.errors import ColoopError
from coloop.hosts.beginnings import Beginnings, Home
from coloop.hosts.encoder import Encoder
from coloop.hosts.engine_home import EngineHome
from coloop.hosts.messages import (
    LearnOrder,
    LearnReply,
    Load,
    Poll,
    PromptRequest,
    Sampling,
    TooLong,
)
from coloop.hosts.scorer_home import ScorerHome
from coloop.hosts.trainer_home import TrainerHome
from coloop.hosts.weights import HeldWeights, Vocabulary
from coloop.models import DTYPES, read_weights
from coloop.plan.types import WeightsPlan
from coloop.recipes import recipe_of
from coloop.rollout import GenerationRequest
from coloop.rollout import generate as generate_texts
from coloop.rollout.protocol import Generation
from coloop.run_log import log_into
from coloop.spec.algorithm import node_algorithms, resolve_algorithm
from coloop.spec.graph import LoopSpec
from coloop.spec.homes import DEFAULT_POOL
from coloop.spec.model import ComputeDtype
from coloop.spec.paths import apply_overrides
from coloop.sync import CHANNELS, Counted, Evidence, FilesChannel, LocalChannel, Parcel
from coloop.sync.evidence import Probe
from coloop.sync.folders import can_use
from coloop.tables import Tokens
from coloop.training import Hooks, TeachingLoad


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSettings:
    """What a host is built from; picklable."""

    spec: LoopSpec
    weights: tuple[WeightsPlan, ...]
    """All groups of the loop, those of other pools as well: what lives here may start from them."""
    root: Path
    seed: int
    threads: int
    pool: str = DEFAULT_POOL
    """Where the host stands: it has the homes that are planned for this pool."""
    device: str = "cpu"
    log: Path | None = None
    """The run's log, for a host in a process of its own; it is left alone where its folder cannot
    be seen from there."""


def gpus_here() -> int:
    """GPUs that this process can use."""
    return torch.cuda.device_count()


class PoolHost:
    """See the module."""

    def __init__(self, settings: HostSettings) -> None:
        if settings.log is not None and settings.log.parent.is_dir():
            log_into(settings.log)
        self._settings = settings
        self._spec = settings.spec
        self._homes: dict[str, Home] = {}
        self._engines: dict[str, EngineHome] = {}
        self._vocabularies: dict[str, Vocabulary] = {}
        self._applied: tuple[dict[str, Any], LoopSpec] = ({}, settings.spec)
        self._interrupted = threading.Event()
        self._has_changed = False
        self._too_long: dict[tuple[str, str], tuple[TooLong, ...]] = {}
        self._progress = (0, 0, "")
        self._process = psutil.Process(os.getpid())

    # --- asked while something else runs

    def poll(self) -> Poll:
        """How far the running call is."""
        done, total, unit = self._progress
        memory = self._process.memory_info().rss
        return Poll(done=done, total=total, unit=unit, pid=self._process.pid, rss_bytes=memory)

    def interrupt(self) -> None:
        """Give up the running call where that leaves everything as it was before it."""
        self._interrupted.set()

    # --- the host's work

    def build(self) -> None:
        """Load or make the weights of every home."""
        torch.set_num_threads(self._settings.threads)
        plans = {weights.name: weights for weights in self._settings.weights}
        beginnings = Beginnings(
            spec=self._spec,
            plans=plans,
            root=self._settings.root,
            seed=self._settings.seed,
            device=self._settings.device,
        )
        self._homes = beginnings.homes(self._settings.pool)
        for group, weights in plans.items():
            for engine in weights.engines:
                if engine.pool == self._settings.pool:
                    self._engines[group] = beginnings.engine(group, engine)
                    if group not in self._homes:
                        self._engines[group].build(beginnings.model(group, self._homes), 0)

    def generate(
        self, group: str, node: str, requests: Sequence[PromptRequest], sampling: Sampling
    ) -> tuple[list[list[Tokens] | TooLong], int]:
        """What was written to each request, in order, and the version that wrote them; for a prompt
        that leaves no room for what may be written, how long it is."""
        self._begin()
        home = self._writing(group)
        engine = home.engine
        encoder = home.encoder(node)
        prompts = [encoder.prompt(request.prompt) for request in requests]
        refused = [
            too_long(len(prompt) + sampling.max_new_tokens, engine.max_length) for prompt in prompts
        ]
        wanted = [
            GenerationRequest(
                id=request.id,
                prompt_ids=prompt,
                seed=seed,
                max_new_tokens=sampling.max_new_tokens,
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                top_k=sampling.top_k,
                stop=sampling.stop,
                greedy=sampling.temperature == 0,
            )
            for request, prompt, problem in zip(requests, prompts, refused, strict=True)
            if problem is None
            for seed in request.seeds
        ]
        written = iter(
            generate_texts(engine, wanted, self._rows_progress, self._interrupted.is_set)
        )
        replies: list[list[Tokens] | TooLong] = []
        for request, prompt, problem in zip(requests, prompts, refused, strict=True):
            own = [] if problem is not None else list(islice(written, len(request.seeds)))
            shared = ids_of(prompt)
            texts = [_tokens(shared, one, encoder, sampling, node) for one in own]
            replies.append(texts if problem is None else problem)
        return replies, engine.version

    def score(
        self, group: str, node: str, texts: Sequence[TokenSequence], temperature: float
    ) -> list[Numbers | TooLong]:
        """Log-probs of each text's completion tokens; of one that the model cannot read, how long
        it is."""
        self._begin()
        home = self._homes[group]
        encoder = self._encoder(group, node)
        sequences = [encoder.sequence(text) for text in texts]
        refused = [too_long(len(one.token_ids), home.weights.positions) for one in sequences]
        fitting = [one for one, bad in zip(sequences, refused, strict=True) if bad is None]
        hooks = Hooks(progress=self._count_rows, should_stop=self._interrupted.is_set)
        scored = iter(home.score(fitting, temperature=temperature, hooks=hooks))
        return [
            problem if problem is not None else next(scored)[sequence.prompt_length :]
            for sequence, problem in zip(sequences, refused, strict=True)
        ]

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
        """For each completion the index of the token in which each of its steps ends."""
        self._begin()
        encoder = self._encoder(group, node)
        return [encoder.step_ends(ids, separator) for ids in token_ids]

    def learn(self, order: LearnOrder) -> LearnReply:
        """One update of a group: its loads joined, or role after role where an order is given."""
        self._begin()
        self._has_changed = False
        home = self._trainer(order.group)
        spec, backend = self._at(order.overrides), home.backend
        if order.is_new_phase:
            backend.begin_phase(order.phase_updates)
        training = home.training(spec)
        hooks = Hooks(progress=self._count_rows, should_stop=self._interrupted.is_set)
        parts = [
            [one for load in part for one in self._teaching(spec, home.weights, load)]
            for part in _in_order(order.loads, order.order)
        ]
        if order.updates * len(parts) > 1:
            parts = [backend.prepare(part, training, hooks=hooks) for part in parts]
        metrics: dict[str, dict[str, float]] = {}
        samples = tokens = 0
        before = home.weights.version
        for turn in range(order.updates):
            for number, part in enumerate(parts):
                has_changed = self._has_changed
                try:
                    report = backend.update(
                        part,
                        training,
                        seed=order.seed + 7919 * turn + number,
                        hooks=replace(hooks, should_stop=_never) if has_changed else hooks,
                    )
                finally:
                    self._has_changed = has_changed or backend.has_stepped
                for role, found in report.metrics.items():
                    metrics.setdefault(role, {}).update(found)
                if turn == 0:
                    # What is learned from several times is there once in the step.
                    samples += report.rows
                    tokens += report.tokens
        if self._has_changed:
            home.weights.version += 1
        return LearnReply(
            metrics=metrics,
            version=home.weights.version,
            before=before,
            samples=samples,
            tokens=tokens,
            too_long=self._left_out(),
        )

    def evaluate(self, order: LearnOrder) -> LearnReply:
        """Losses of the loads by the weights as they are."""
        self._begin()
        home = self._trainer(order.group)
        spec = self._at(order.overrides)
        loads = [one for load in order.loads for one in self._teaching(spec, home.weights, load)]
        hooks = Hooks(progress=self._count_rows, should_stop=self._interrupted.is_set)
        report = home.backend.evaluate(loads, home.training(spec), hooks=hooks)
        return LearnReply(
            metrics=report.metrics,
            version=home.weights.version,
            before=home.weights.version,
            samples=report.rows,
            tokens=report.tokens,
            too_long=self._left_out(),
        )

    def sync(self, group: str) -> tuple[Evidence, Evidence] | None:
        """Bring the group's weights to its engine in this process; what both ends say then. Nothing
        where the engine has this version, or gets its first weights when it is built."""
        self._begin()
        weights, engine = self._homes[group].weights, self._engines[group]
        if engine.version in (None, weights.version):
            return None
        parcel = weights.send(LocalChannel(), engine.dtype)
        sent = weights.evidence(engine.dtype)
        return sent, engine.receive(parcel, sent.probe)

    def send(
        self, group: str, places: Sequence[Path], dtype: ComputeDtype | None
    ) -> tuple[Parcel, Evidence]:
        """Put the group's weights on their way to another process.

        Args:
            places: folders that both processes see, the best first.
            dtype: of the engine that gets them; None: as they are held.
        """
        self._begin()
        weights, channel = self._homes[group].weights, FilesChannel(places)
        if dtype is None:
            return weights.send(channel), weights.bits()
        sent = weights.evidence(DTYPES[dtype])
        return weights.send(channel, DTYPES[dtype]), sent

    def receive(self, group: str, parcel: Parcel, probe: Probe) -> Evidence:
        """Bring weights that came from another process to the group's engine here; what it holds
        then."""
        self._begin()
        return self._engines[group].receive(parcel, probe)

    def take(self, group: str, source: str, parcel: Parcel, ema: float) -> Evidence:
        """Weights that came from another process in place of a group's own; what came."""
        self._begin()
        given = Counted(CHANNELS[parcel.channel]().receive(parcel))
        self._homes[group].weights.take(given, ema=ema, source=source)
        return Evidence(version=parcel.version, fingerprint=given.fingerprint)

    def can_use(self, folder: Path) -> bool:
        """Whether weights can come and go through a folder of the run."""
        return can_use(folder)

    def follow(self, group: str, source: str, ema: float) -> None:
        """The weights of another group of this process in place of a group's own."""
        self._begin()
        channel = LocalChannel()
        parcel = self._homes[source].weights.send(channel)
        self._homes[group].weights.take(channel.receive(parcel), ema=ema, source=source)

    def follow_folder(self, group: str, source: str, ema: float, folder: str) -> None:
        """The weights of another group, as a checkpoint folder has them, in place of a group's
        own."""
        self._begin()
        self._homes[group].weights.take(read_weights(Path(folder)), ema=ema, source=source)

    def reset_optimizer(self, group: str) -> None:
        self._trainer(group).backend.reset_optimizer()

    def has_changed(self) -> bool:
        """Whether the last order to learn changed weights; of one that broke off as well."""
        return self._has_changed

    def version(self, group: str) -> int:
        return self._homes[group].weights.version

    def save(self, folder: str, earlier: str | None = None) -> dict[str, int]:
        """Each group's weights in Hugging Face format, and what its trainer needs to go on; bytes
        of each file, by its path in the folder.

        Args:
            earlier: a folder that was saved before; what it has already is not written again.
        """
        whole = Path(folder)
        for name, home in self._homes.items():
            home.save(whole / name, None if earlier is None else Path(earlier) / name)
        files = (path for name in self._homes for path in sorted((whole / name).rglob("*")))
        return {
            path.relative_to(whole).as_posix(): path.stat().st_size
            for path in files
            if path.is_file()
        }

    def load(self, folder: str) -> None:
        """What `save` wrote."""
        for name, home in self._homes.items():
            home.load(Path(folder) / name)

    # --- inside

    def _begin(self) -> None:
        self._interrupted.clear()
        self._progress = (0, 0, "")
        self._too_long = {}

    def _left_out(self) -> dict[str, tuple[TooLong, ...]]:
        """Rows that are longer than the model's positions, by role."""
        found: dict[str, tuple[TooLong, ...]] = {}
        for (node, _), rows in self._too_long.items():
            found[node] = (*found.get(node, ()), *rows)
        return {node: rows for node, rows in found.items() if rows}

    def _trainer(self, group: str) -> TrainerHome:
        home = self._homes[group]
        if isinstance(home, ScorerHome):
            raise ColoopError(f"weights {group} are frozen: they have no trainer")
        return home

    def _writing(self, group: str) -> EngineHome:
        """The home of a group's engine, which is built here where nothing was written yet."""
        home = self._engines[group]
        if home.version is None:
            weights = self._homes[group].weights
            home.build(weights.whole(), weights.version)
        return home

    def _encoder(self, group: str, node: str) -> Encoder:
        """The tokenizer of weights that are held here, for one of the nodes that use them."""
        if group not in self._vocabularies:
            self._vocabularies[group] = Vocabulary(self._homes[group].weights.loaded.tokenizer)
        return self._vocabularies[group].encoder(node)

    def _at(self, overrides: Mapping[str, Any]) -> LoopSpec:
        values = dict(overrides)
        if not values:
            return self._spec
        if self._applied[0] != values:
            self._applied = (values, apply_overrides(self._spec, values))
        return self._applied[1]

    def _teaching(self, spec: LoopSpec, held: HeldWeights, load: Load) -> list[TeachingLoad]:
        rollout = getattr(spec.nodes[load.node], "rollout", None)
        longest = rollout.max_new_tokens if rollout is not None else None
        encoder = self._encoder(held.name, load.node)
        every = [encoder.encoded(item) for item in load.items]
        refused = [too_long(_length(row), held.positions) for row in every]
        self._too_long[load.node, load.port] = tuple(one for one in refused if one is not None)
        rows = [row for row, problem in zip(every, refused, strict=True) if problem is None]
        heats = [1.0 if isinstance(row, Pair) else row.temperature for row in rows]
        loads = []
        for entry in node_algorithms(spec, load.node)[load.port]:
            settings = resolve_algorithm(entry, max_new_tokens=longest)
            loads.append(
                TeachingLoad(
                    role=load.node,
                    port=load.port,
                    recipe=recipe_of(settings),
                    settings=settings,
                    rows=rows,  # type: ignore[arg-type]
                    weight=float(entry.weight),
                    temperature=heats,
                )
            )
        return loads

    def _rows_progress(self, *, rows_done: int, rows_total: int, tokens_done: int) -> None:
        del tokens_done
        self._progress = (rows_done, rows_total, "rows")

    def _count_rows(self, done: int, total: int) -> None:
        self._progress = (done, total, "rows")


def too_long(tokens: int, limit: int | None) -> TooLong | None:
    """What is wrong with a row of so many tokens, where the model reads no more than `limit`."""
    return TooLong(tokens=tokens, limit=limit) if limit is not None and tokens > limit else None


def _length(row: Unit) -> int:
    """Tokens of a row, of a pair those of its longer side."""
    if isinstance(row, Pair):
        return max(len(row.chosen.token_ids), len(row.rejected.token_ids))
    return len(row.token_ids)


def _both(chosen: Numbers | TooLong, rejected: Numbers | TooLong) -> dict[str, Numbers] | TooLong:
    if isinstance(chosen, TooLong) or isinstance(rejected, TooLong):
        problems = [side for side in (chosen, rejected) if isinstance(side, TooLong)]
        return max(problems, key=lambda one: one.tokens)
    return {"chosen": chosen, "rejected": rejected}


def _tokens(
    prompt_ids: Ids, written: Generation, encoder: Encoder, sampling: Sampling, node: str
) -> Tokens:
    return Tokens(
        prompt_ids=prompt_ids,
        token_ids=ids_of(written.token_ids),
        loss_mask=np.ones(len(written.token_ids), dtype=np.bool_),
        log_probs=np.array(written.log_probs, dtype=np.float32),
        temperature=sampling.temperature or 1.0,
        writer=node,
        tokenizer=encoder.mark,
        text=encoder.text(written.token_ids),
        finished=written.finished,
    )


def _in_order(loads: Sequence[Load], order: Sequence[str]) -> list[list[Load]]:
    """One joint part, or a part for each role in the given order, the others joined last."""
    if not order:
        return [list(loads)]
    parts = [[load for load in loads if load.node == node] for node in order]
    rest = [load for load in loads if load.node not in order]
    return [part for part in (*parts, rest) if part]


def _never() -> bool:
    return False
