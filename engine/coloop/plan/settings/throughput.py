"""How long a stage takes, and what limits it.

On GPUs a pass over tokens takes the time of its products, its attention and its memory traffic
(`passes`), and what communication does not overlap; generation that of its rows until the longest
ends (`serving`). The model of a CPU is coarse (`cores`). Knows nothing about memory use.
"""

from dataclasses import replace
from math import ceil
from typing import Any, Literal

from coloop.plan.settings.cores import (
    LAYER_SECONDS,
    SLOWER_AROUND,
    Core,
    learned_seconds,
    pass_seconds,
    stepped_seconds,
    synced_seconds,
    written_seconds,
)
from coloop.plan.settings.corrections import correction_of
from coloop.plan.settings.engines import Engine
from coloop.plan.settings.facts import adapter_parameters
from coloop.plan.settings.learning import Update, update_in
from coloop.plan.settings.machine import PoolShare
from coloop.plan.settings.measured import UNCORRECTED, Correction
from coloop.plan.settings.memory import Memory, packed_bytes
from coloop.plan.settings.passes import Kernels, Pass, count_tensors, token_seconds
from coloop.plan.settings.probes import ProbeLoad, compared_rows
from coloop.plan.settings.serving import PREFILL_TOKENS, writing_seconds
from coloop.plan.settings.survey import PhaseLoad, Survey
from coloop.plan.settings.traced import Constant, named
from coloop.plan.settings.training import HALF
from coloop.plan.settings.weights import WHOLE, Weights
from coloop.spec.algorithm import asks_of_others
from coloop.spec.groups import chat_service
from coloop.spec.lean import record
from coloop.spec.lineage.counts import RowCounts
from coloop.spec.ports import PORTS
from coloop.spec.reward import ChatSource
from coloop.spec.services import ChatService
from coloop.spec.table_sizes import TableSize
from coloop.spec.training import Checkpointing

Bound = Literal["compute", "bandwidth", "latency", "network", "driver", "service"]

MEASURED = "measured with coloop"
SYNCS = "published weight syncs (tests/bench)"
SPEEDS = "published training speeds (tests/bench)"
SYNC_LATENCY_SECONDS = Constant(0.05, "least time of a sync", SYNCS, unit="s")
TENSOR_SECONDS = Constant(8.0e-5, "time of a tensor", SYNCS, unit="s")
"""To hand on one tensor of a model: it is copied into a bucket, named, and copied out again."""
HOST_BYTES_PER_SECOND = Constant(
    20e9, "bandwidth to host memory", "PCIe 4 and host memory", unit="B/s"
)
"""Over PCIe and host memory, for offloaded weights and optimizer states."""
OVERLAPPED = Constant(0.25, "share of the shorter that adds to the longer", SPEEDS)
"""Of communication and computation that overlap, the share of the shorter that adds to the longer:
they compete for the same units and memory."""

CPU_SPREAD_SECONDS = Constant(3.0e-2, "time of a layer that is gathered", MEASURED, unit="s")
"""Per layer and micro-batch if processes hold shards of it."""
CPU_CALL_SECONDS = Constant(5.0e-3, "time of a call for each process", MEASURED, unit="s")
"""Per process of a pool and call on rows: sending its rows, and waiting for the last process."""

RECOMPUTED: dict[Checkpointing, float] = {False: 0.0, True: 1.0, "selective": HALF, "offload": 1.0}
"""Share of the layers whose activations are recomputed."""
ROW_SECONDS = {
    kind: Constant(seconds, "time of a row", MEASURED, "s")
    for kind, seconds in {
        "builtin": 2.0e-5,
        "python": 2.5e-5,
        "remote": 0.5,
        "template": 5.0e-5,
        "code": 8.0e-5,
        "pairs": 3.0e-5,
        "other": 1.0e-5,
        "filter": 3.0e-5,
        "credit": 1.1e-5,
    }.items()
}
"""Time of the driver for a row that a stage works on; of a template, for each text that it makes.
Those of templates, filters and pairs are processor time of roles in four preset loops, on an Intel
Xeon beside other work; `code` and `python` are one call in the sandbox of a function that does
little."""
CREDIT_SECONDS = Constant(6.0e-3, "least time of advantages", MEASURED, unit="s")
"""To compute the advantages of a step, besides the time of its rows."""
CHAT_TOKEN_SECONDS = Constant(
    0.02, "time of a token of the service", "assumed: 50 tokens a second", unit="s"
)
"""Per token of an answer by a chat model elsewhere: 50 tokens a second."""
STAGE_SECONDS = Constant(1.0e-3, "least time of a stage", MEASURED, unit="s")
"""Minimum time of a stage, for calls and tables."""


@record
class StageTime:
    seconds: float
    samples: float
    tokens: float
    bound: Bound
    correction: Correction = UNCORRECTED
    """What `seconds` was multiplied by."""


class Clock:
    def __init__(self, survey: Survey, memory: Memory, counts: RowCounts | None = None) -> None:
        """`counts`: rows of the stages; None: those of a step."""
        self._survey, self._memory = survey, memory
        self._counts = counts or survey.counts

    def time(self, stage: str, phase: PhaseLoad | None = None) -> StageTime:
        """Duration of one run of a stage, corrected by earlier runs. `phase` matters for learners
        only; None: where they learn most."""
        time, pool = self._time(stage, phase), self._survey.pool_of(stage)
        is_call = not stage.endswith((".sync", ".evaluate"))
        if is_call and pool is not None and not pool.gpus and pool.workers > 1:
            time = replace(time, seconds=time.seconds + CPU_CALL_SECONDS * pool.workers)
        correction = correction_of(self._survey, stage)
        if not correction.runs:
            return time
        predicted = named("predicted", time.seconds, "s")
        return replace(time, seconds=predicted * _factor(correction), correction=correction)

    def _time(self, stage: str, phase: PhaseLoad | None) -> StageTime:
        node, verb = stage.rsplit(".", 1)
        if verb == "generate" or (verb == "score" and self._survey.engine_of(node) is not None):
            return self._writing(node)
        if verb == "score":
            service = chat_service(self._survey.spec.nodes[node])
            return self._scoring(node) if service is None else self._asking(node, service)
        if verb == "learn":
            return self._learning(node, phase)
        if verb == "sync":
            return self._sync(node)
        if verb == "evaluate":
            return self._evaluating(node)
        return self._preparing(node, verb)

    # Writing

    def _writing(self, node: str) -> StageTime:
        survey = self._survey
        engine = survey.engine_of(node) or survey.search_engine(node)
        table = self._counts.of(node, "rollouts").mean
        if engine is None:
            rollout: Any = getattr(survey.spec.nodes[node], "rollout", None)
            if rollout is not None and rollout.engine == "remote":
                seconds = ROW_SECONDS["remote"] * table.rows / 8
                return _timed(seconds, table.rows, table.rows * table.written, "service")
            return _timed(0.0, table.rows, table.rows * table.written, "driver")
        return self._write(engine, table)

    def _write(self, engine: Engine, table: TableSize) -> StageTime:
        written = table.rows * table.written
        if self._survey.machine.is_cpu:
            return _timed(self._cpu_writing(engine, table), table.rows, written, "compute")
        seconds, bound = self._gpu_writing(engine, table)
        if self._memory.sleeps.get((engine.weights.name, engine.pool.name)) == "weights":
            moved = 2 * engine.weight_bytes / HOST_BYTES_PER_SECOND  # out and back
            seconds += named("weights to host memory and back", moved, "s")
        return _timed(seconds, table.rows, written, bound)

    def _gpu_writing(self, engine: Engine, table: TableSize) -> tuple[float, Bound]:
        rows = table.rows / engine.copies
        serving = self._memory.servings.get(engine.writers[0])
        context = max(table.prompt + table.written / 2, 1.0)
        fitting = serving.tokens / context if serving is not None else rows
        at_once = max(min(engine.max_sequences, fitting, rows), 1.0)
        return writing_seconds(
            engine, self._survey.machine.preset, replace(table, rows=rows), at_once
        )

    def _cpu_writing(self, engine: Engine, table: TableSize) -> float:
        weights, rows = engine.weights, table.rows / engine.copies
        return written_seconds(
            self._core(weights, engine.pool),
            weights.arch,
            weights.count.active,
            replace(table, rows=rows),
            at_once=max(min(engine.max_sequences, rows), 1.0),
            is_packed=packed_bytes(engine) > 0,
            held=weights.precision.engine_bytes * weights.count.decoded,
        )

    def _core(self, weights: Weights, pool: PoolShare) -> Core:
        machine = self._survey.machine
        return Core(
            flops=machine.preset.bf16_flops * machine.processor.product_share,
            threads=pool.threads,
            is_half=weights.precision.compute_bytes < 4 and machine.processor.has_bf16,
            crowding=max(pool.places / machine.processor.cores, 1.0),
            around=SLOWER_AROUND if machine.processor.product_share < 1 else 1.0,
        )

    def _asking(self, node: str, service: ChatService) -> StageTime:
        """Requests to a chat model by URL."""
        section: Any = self._survey.spec.nodes[node]
        if isinstance(service, ChatSource):
            rows = self._counts.worked_on(node).mean.rows
            written = service.max_new_tokens / 2
        else:
            table = self._counts.of(node, "rollouts").mean
            rows, written = table.rows, table.written
        if section.read.ask == "one_by_one":
            rows *= len(section.read.rubric or ("",))
        seconds = rows * (ROW_SECONDS["remote"] + written * CHAT_TOKEN_SECONDS)
        at_once = max(min(service.concurrency, rows), 1.0)
        return _timed(seconds / at_once, rows, rows * written, "service")

    # Passes over tokens

    def _scoring(self, node: str) -> StageTime:
        survey = self._survey
        table = self._counts.worked_on(node).mean
        if survey.spec.nodes[node].kind == "reference":
            table = self._counts.arriving(node, "rollouts", "pairs").mean
        sequences = table.rows * table.sides
        read, written = sequences * table.length, sequences * table.written
        if asks_of_others(survey.spec, node):
            others = self._counts.arriving(node, "pairs").mean
            read += others.rows * others.sides * others.length
            written += others.rows * others.sides * others.written
        weights = survey.weights_of(node)
        if weights is None:
            if node in survey.owners:  # a model of which nothing is known: noted as a gap
                return _timed(0.0, sequences, written, "compute")
            return self._rule(node, table.rows)
        return self._reading(weights, table, read=read, written=written)

    def _reading(
        self,
        weights: Weights,
        table: TableSize,
        *,
        read: float | None = None,
        written: float | None = None,
    ) -> StageTime:
        """A forward pass over rows. `read`: tokens read, if others are read as well; `written`:
        those of them that are scored."""
        sequences, length = table.rows * table.sides, table.length
        read = sequences * length if read is None else read
        written = sequences * table.written if written is None else written
        if _pads(weights):
            length = max(table.length_max, length)
            read *= length / max(table.length, 1.0)
        seconds = self._forward_seconds(weights, read, length)
        return _timed(seconds, sequences, written, "compute")

    def _forward_seconds(self, weights: Weights, tokens: float, length: float) -> float:
        if self._survey.machine.is_cpu:
            return self._cpu_pass(weights, tokens, length)
        return self._gpu_forward(weights, tokens, length)

    def _cpu_pass(self, weights: Weights, tokens: float, length: float) -> float:
        """Seconds of a forward pass in each process, over its share of the tokens."""
        core, arch = self._core(weights, weights.pool), weights.arch
        each = tokens / weights.pool.places
        fixed = arch.layers * LAYER_SECONDS * core.crowding
        return fixed + pass_seconds(core, arch, weights.count.active, each, length)

    def _rule(self, node: str, rows: float) -> StageTime:
        source: Any = getattr(self._survey.spec.nodes[node], "source", None)
        kind = getattr(source, "type", "builtin")
        seconds = rows * ROW_SECONDS.get(kind, ROW_SECONDS["builtin"])
        if kind == "remote":
            seconds /= source.concurrency
        return _timed(seconds, rows, 0.0, "service" if kind == "remote" else "driver")

    def _learning(self, owner: str, phase: PhaseLoad | None) -> StageTime:
        update = self._memory.updates.get(owner)
        if update is not None and phase is not None:
            update = update_in(self._survey, update, phase)
        if update is None:
            return _timed(0.0, 0.0, 0.0, "driver")
        bound: Bound = "compute"
        if self._survey.machine.is_cpu:
            seconds = self._cpu_learning(update) + self._summed_seconds(update)
        else:
            seconds, bound = self._gpu_learning(update)
        measured = update.work.measured
        if not self._survey.machine.is_cpu:
            measured += update.work.prepared
        if measured:
            length = _padded(update)
            measured *= length / max(update.work.length, 1.0)
            read = self._forward_seconds(update.weights, measured, length)
            seconds += named("log-probs before the update", read, "s")
        return _timed(seconds, update.work.sequences, update.work.trained, bound)

    def _gpu_learning(self, update: Update) -> tuple[float, Bound]:
        weights, machine = update.weights, self._survey.machine
        work = self._work(
            weights,
            _padded(update),
            self._tokens_at_once(update),
            recomputed=RECOMPUTED[update.settings.gradient_checkpointing],
        )
        seconds = self._pass_seconds(weights, _tokens(update), work)
        seconds += self._summed_seconds(update) + self._exchanged_seconds(update, work)
        seconds *= self._bubble(update)
        bound: Bound = "compute"
        moved = named("weights gathered, gradients reduced", self._moved_seconds(update), "s")
        if moved > seconds:
            bound = "network"
        seconds = max(seconds, moved) + OVERLAPPED * min(seconds, moved)
        resting = weights.states.weights + weights.states.optimizer
        steps = update.work.mini_batches * 3 * resting / machine.preset.bandwidth
        steps += update.work.mini_batches * weights.states.host / HOST_BYTES_PER_SECOND
        return seconds + named("optimizer steps", steps, "s"), bound

    def _tokens_at_once(self, update: Update) -> float:
        """Tokens of a micro-batch on the GPUs that share it."""
        work, settings = update.work, update.settings
        each = work.sequences / work.sides * work.passes / work.mini_batches / update.weights.shards
        rows = min(update.rows_at_once, each)
        if settings.packing and update.weights.training.micro_batch is None:
            return min(settings.tokens_at_once, each * work.sides * work.length)
        return rows * work.sides * _padded(update)

    def _micro_batches(self, update: Update) -> float:
        """Micro-batches of an optimizer step on each rank."""
        tokens = _tokens(update) / update.work.mini_batches / update.weights.shards
        least = max(tokens / max(self._tokens_at_once(update), 1.0), 1.0)
        return named("micro-batches of an optimizer step", least)

    def _bubble(self, update: Update) -> float:
        """What waiting for the first and the last stage of a pipeline adds: (m + p - 1) / m with m
        micro-batches in p stages (Narayanan 2021, arXiv 2104.04473)."""
        stages = update.settings.pipeline_parallel
        waits = 1 + (stages - 1) / self._micro_batches(update)
        return named("waiting of a pipeline", waits)

    def _cpu_learning(self, update: Update) -> float:
        """Seconds of one process with its share of the rows."""
        weights = update.weights
        core, ranks = self._core(weights, weights.pool), weights.pool.places
        tokens = update.work.read * update.work.passes / ranks
        micro_batches = tokens / update.settings.tokens_at_once
        if weights.training.micro_batch is not None:
            rows = update.work.sequences / update.work.sides * update.work.passes / ranks
            micro_batches = rows / weights.training.micro_batch
        seconds = learned_seconds(
            core,
            weights.arch,
            weights.count.active,
            tokens=tokens,
            length=update.work.length,
            recompute=RECOMPUTED[update.settings.gradient_checkpointing],
            micro_batches=max(ceil(micro_batches), update.work.mini_batches),
        )
        stepped = weights.trainable / (1 if weights.scheme in WHOLE else weights.shards)
        seconds += update.work.mini_batches * stepped_seconds(core, stepped)
        return seconds + self._moved_seconds(update)

    def _work(
        self,
        weights: Weights,
        length: float,
        tokens_at_once: float,
        *,
        has_backward: bool = True,
        recomputed: float = 0.0,
    ) -> Pass:
        """`tokens_at_once`: of a micro-batch, on the GPUs that share its layers."""
        base = self._survey.bases.get(weights.name)
        adapter = 0.0
        if base is not None:
            passed = weights.count.active / weights.count.total  # adapters of some experts only
            adapter = passed * adapter_parameters(weights.arch, base.lora) / base.lora.rank
        sharing = weights.update.tensor_parallel * weights.update.context_parallel
        return Pass(
            length=length,
            micro_batch=tokens_at_once / sharing,
            has_backward=has_backward,
            trains_all=weights.trains_all,
            recomputed=recomputed,
            is_fp8=self._survey.dtypes[weights.name].compute == "fp8",
            packed_bytes=_packed_bytes(weights),
            adapter_width=adapter,
        )

    def _pass_seconds(self, weights: Weights, tokens: float, work: Pass) -> float:
        """Seconds of a pass over tokens on all GPUs of the group's pool."""
        gpu = self._survey.machine.preset
        each = token_seconds(weights.arch, weights.count, gpu, _kernels(weights), work)
        is_alone = weights.trains and weights.scheme == "single"
        ranks = 1 if is_alone else weights.pool.places  # who only reads shares the rows
        return named("passes over tokens", tokens / ranks * each.total, "s")

    def _gpu_forward(self, weights: Weights, tokens: float, length: float) -> float:
        """Seconds of a forward pass, while which sharded weights are gathered."""
        machine = self._survey.machine
        each = tokens / weights.pool.places
        at_once = max(min(PREFILL_TOKENS, each), 1.0)
        work = self._work(weights, length, at_once, has_backward=False)
        seconds, moved = self._pass_seconds(weights, tokens, work), 0.0
        n = weights.state_shards
        if n > 1 and weights.scheme in ("fsdp2", "zero3"):
            size = weights.precision.compute_bytes * weights.total / weights.model_parallel
            moved = max(each / at_once, 1.0) * size * (n - 1) / n / machine.link(n)
            moved = named("gathered weights", moved, "s")
        return max(seconds, moved) + OVERLAPPED * min(seconds, moved)

    def _summed_seconds(self, update: Update) -> float:
        """Seconds of tensor parallelism: the hidden states of a layer are summed twice forward,
        twice backward, and twice more if recomputed. Nothing overlaps."""
        weights = update.weights
        t = weights.update.tensor_parallel
        if t == 1:
            return 0.0
        sums = weights.arch.layers * (4 + 2 * RECOMPUTED[update.settings.gradient_checkpointing])
        size = weights.arch.hidden_size * weights.precision.compute_bytes
        ranks = weights.shards * weights.update.context_parallel * weights.update.pipeline_parallel
        moved = sums * _tokens(update) / ranks * size * 2 * (t - 1) / t
        return named("sums of tensor parallelism", moved / self._survey.machine.link(t), "s")

    def _exchanged_seconds(self, update: Update, work: Pass) -> float:
        """Seconds of expert parallelism: each token goes to its experts and back, in the layers of
        experts, forward, backward and if recomputed. Ranks of a group are neighbours; what goes to
        other machines has one network card per GPU."""
        weights, machine = update.weights, self._survey.machine
        experts, moe = weights.update.expert_parallel, weights.arch.moe
        if experts == 1 or moe is None:
            return 0.0
        layers = weights.arch.layers - moe.dense_layers
        sent = 2 * (work.forwards + 1) * layers * moe.active_experts
        sent *= weights.arch.hidden_size * weights.precision.compute_bytes
        sent *= _tokens(update) / weights.pool.places
        here = min(machine.preset.gpus_per_node or experts, experts)
        seconds = sent * (here - 1) / experts / machine.preset.link_bandwidth
        seconds += sent * (experts - here) / experts / machine.network()
        return named("tokens to their experts and back", seconds, "s")

    def _moved_seconds(self, update: Update) -> float:
        """Seconds to gather weights twice and reduce gradients once per micro-batch; for replicas
        and Megatron, to reduce gradients once per optimizer step."""
        weights, machine = update.weights, self._survey.machine
        n = weights.state_shards
        if n == 1 or weights.scheme in ("single", "zero0"):
            return 0.0
        if weights.scheme == "replicas":
            moved = 2 * 4 * weights.trainable * (n - 1) / n
            return update.work.mini_batches * moved / machine.link(n)
        beside = max(weights.model_parallel // weights.update.context_parallel, 1)
        link = machine.link(n, beside)
        width = weights.precision.compute_bytes
        here = (n - 1) / n / weights.model_parallel * weights.update.context_parallel
        if weights.scheme == "megatron":
            return update.work.mini_batches * (4 + width) * weights.trainable * here / link
        gathers = 0
        if weights.scheme in ("fsdp2", "zero3"):
            gathers = 2 if update.settings.reshard_after_forward else 1
        moved = gathers * width * weights.total * here
        if weights.trains_all:
            moved += 4 * weights.total * here
        waited = (weights.arch.layers + 1) * CPU_SPREAD_SECONDS if machine.is_cpu else 0.0
        if machine.is_cpu:
            rows = update.rows_at_once * weights.shards
            micro_batches = max(update.work.sequences * update.work.passes / rows, 1.0)
        else:
            micro_batches = update.work.mini_batches * self._micro_batches(update)
        return micro_batches * (waited + moved / link)

    # The rest

    def _sync(self, owner: str) -> StageTime:
        weights = self._survey.weights.get(owner)
        if weights is None:
            return _timed(0.0, 0.0, 0.0, "driver")
        machine = self._survey.machine
        if machine.is_cpu:
            seconds = synced_seconds(weights.total)
            return _timed(seconds, 0.0, 0.0, "bandwidth")
        return _timed(self._handed_on_seconds(weights), 0.0, 0.0, "network")

    def _handed_on_seconds(self, weights: Weights) -> float:
        """Seconds until the engines have new weights: buckets are gathered and sent one after
        another.

        Within a machine both go over the link between its GPUs. Engines in the pool itself get
        every bucket from all of its machines, over all their network cards. Those elsewhere get it
        from one GPU: the parts of other machines arrive over its network card and the whole leaves
        over it, for each pipeline stage by itself.
        """
        survey = self._survey
        machine, update, pool = survey.machine, weights.update, weights.pool
        sent = weights.trainable if weights.name in survey.bases else weights.total
        size = float(weights.precision.compute_bytes * sent)
        stages, link = update.pipeline_parallel, machine.preset.link_bandwidth
        engines = [engine for engine in survey.engines if engine.weights.name == weights.name]
        is_away = any(engine.pool.name != pool.name for engine in engines)
        seconds = SYNC_LATENCY_SECONDS + TENSOR_SECONDS * count_tensors(weights.arch) / stages
        if pool.places > 1:
            seconds += size / (machine.link(pool.places) if not is_away else link)
        if is_away and not machine.is_one_machine(machine.preset.gpus):
            machines = max(pool.places / machine.preset.gpus_per_node, 1.0)
            seconds += size / stages * (2 - 1 / machines) / machine.network()
        elif is_away:
            seconds += size / link
        return seconds

    def _evaluating(self, node: str) -> StageTime:
        """The stages that an evaluation runs on its own rows, one after another, and the forward
        passes over rows whose loss it reads."""
        survey = self._survey
        section: Any = survey.spec.nodes[node]
        load, passes = survey.probes.get(node, ProbeLoad()), survey.passes_of(node)
        clocks = [Clock(survey, self._memory, counts) for counts in passes]
        names = [stage for _ in clocks for stage in load.stages]
        run = [clock.time(stage) for clock in clocks for stage in load.stages]
        for port in section.of:
            table = compared_rows(survey.spec, node, port, passes, survey.counts)
            readers = (port.partition(".")[0], *(s.rpartition(".")[0] for s in load.compared))
            groups = (survey.weights_of(reader) for reader in readers)
            read = [weights for weights in groups if weights is not None]
            run += [self._reading(weights, table) for weights in read]
            names += [f"loss of {weights.name}" for weights in read]
        longest = max(run, key=lambda time: time.seconds, default=None)
        rows = survey.counts.arriving(node, "rows").mean.rows
        return _timed(
            sum(named(name, time.seconds, "s") for name, time in zip(names, run, strict=True)),
            max((time.samples for time in run), default=rows),
            max((time.tokens for time in run), default=0.0),
            longest.bound if longest is not None else "driver",
        )

    def _preparing(self, node: str, verb: str) -> StageTime:
        section: Any = self._survey.spec.nodes[node]
        ports = ("rollouts",) if verb == "credit" else PORTS[section.kind].outputs
        rows = max((self._counts.of(node, port).mean.rows for port in ports), default=0.0)
        if verb == "credit":
            fixed = CREDIT_SECONDS + rows * ROW_SECONDS["credit"]
            return _timed(fixed, rows, 0.0, "driver")
        if verb == "prepare":  # also rows that it drops
            rows = max(rows, self._counts.worked_on(node).mean.rows)
        each = ROW_SECONDS.get(section.kind, ROW_SECONDS["other"])
        if section.kind == "template" and section.code is not None:
            each = section.texts_of_row * each + ROW_SECONDS["code"]
        elif section.kind == "template":
            each = max(section.texts_of_row, 1) * each
        seconds = rows * each
        return _timed(seconds, rows, 0.0, "driver")


def _factor(correction: Correction) -> float:
    runs = "a run" if correction.runs == 1 else f"{correction.runs} runs"
    what = "the same model" if correction.is_exact else "others of its kind"
    return Constant(correction.factor, "correction", f"measured on this machine, {runs} of {what}")


def _pads(weights: Weights) -> bool:
    return weights.implementation.pads_to_maximum and not weights.training.packing


def _padded(update: Update) -> float:
    """Mean length of a row with its padding."""
    return update.work.length_max if _pads(update.weights) else update.work.length


def _tokens(update: Update) -> float:
    """Tokens learned in one run of the stage, with repeats and padding."""
    tokens = update.work.sequences * _padded(update) * update.work.passes
    return named("tokens learned", tokens, "tokens")


def _kernels(weights: Weights) -> Kernels:
    facts = weights.implementation
    return Kernels(
        attention=facts.attention,
        is_fused=facts.is_compiled,
        routed_bytes=facts.routing_traffic,
        has_float32_head=facts.has_float32_head,
    )


def _packed_bytes(weights: Weights) -> float:
    """Bytes of weights that are narrower than products take them."""
    frozen, compute = weights.precision.frozen_bytes, weights.precision.compute_bytes
    is_narrow = not weights.trains_all and frozen < 0.9 * compute
    return frozen * weights.count.total if is_narrow else 0.0


def _timed(seconds: float, samples: float, tokens: float, bound: Bound) -> StageTime:
    whole = seconds + STAGE_SECONDS if seconds > 0 else STAGE_SECONDS
    return StageTime(seconds=whole, samples=samples, tokens=tokens, bound=bound)
