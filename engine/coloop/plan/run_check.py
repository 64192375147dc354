"""Whether `run` accepts a valid loop, and if not, why: one finding for each cause.

Each check looks at one part, so one cause can produce several findings: a node of an unsupported
kind also has an unsupported algorithm and edges, and several actors may use the same unsupported
engine. Consequences of another finding are dropped, and equal findings are merged.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from coloop.plan.compile import Placed, compile_plan, place_weights
from coloop.plan.refusals import LATER, cause_of, check_parts, refusal
from coloop.plan.settings.facts import resolve_architecture
from coloop.plan.settings.settings import SPLIT_FAMILIES, EnginePlan
from coloop.plan.types import Plan, WeightsPlan
from coloop.plan.unrolled import Unrolled
from coloop.plan.unused import check_unused, unused_by_backend, unused_by_engine
from coloop.spec.diagnostics import Diagnostic, Fix
from coloop.spec.graph import LoopSpec
from coloop.spec.lean import record
from coloop.spec.nodes import model_of
from coloop.spec.presets import hardware_of
from coloop.spec.rollout import RUNNABLE_ENGINES
from coloop.spec.training import RUNNABLE_BACKENDS

BEYOND_BACKENDS: Final[Mapping[str, tuple[object, ...]]] = {
    "gradient_checkpointing": ("selective", "offload"),
    "dtype": ("fp8", "float16"),
}
"""Values of `training` that no backend supports; float16 would need loss scaling."""
INSTEAD: Final = {"dtype": "leave it unset, or use `bfloat16`"}
"""Supported alternatives, by field."""
WITH_FILES: Final = ("pretrained", "scratch")
"""Types of models that have their own tokenizer."""


@record
class RunCheck:
    """A plan and the reasons why `run` would refuse it."""

    plan: Plan
    refusals: tuple[Diagnostic, ...]
    """Empty if the run would start."""

    @property
    def sentence(self) -> str | None:
        """One line for users; None if a run would start."""
        return f"valid, but {refused_words(self.refusals)}" if self.refusals else None

    def to_json(self) -> dict[str, Any]:
        refusals = [refusal.model_dump(mode="json", exclude_none=True) for refusal in self.refusals]
        return {"runs": not refusals, "refusals": refusals}


def check_run(
    spec: LoopSpec, unrolled: Unrolled | None = None, *, root: Path | None = None
) -> RunCheck:
    """The plan of a valid loop, and the reasons against a run. Arguments as of `compile_plan`."""
    plan = compile_plan(spec, unrolled, root=root)
    return RunCheck(plan=plan, refusals=_one_per_cause(spec, check_runs(spec, plan)))


def refusals_of(
    spec: LoopSpec, unrolled: Unrolled, *, root: Path | None = None
) -> tuple[Diagnostic, ...]:
    """The reasons against a run as of `check_run`, without a plan of the phases. The stages of
    `unrolled` must be in order."""
    placed = place_weights(spec, unrolled.settings(root))
    return _one_per_cause(spec, [*check_drawn(spec), *check_machine(spec, placed)])


def refused_words(refusals: Sequence[Diagnostic]) -> str:
    """The reasons for a refusal in one sentence. No flag overrides them."""
    return refused_because(*(refusal.message for refusal in refusals))


def refused_because(*messages: str) -> str:
    """Like `refused_words`, from the findings' messages."""
    return f"`run` refuses it: {'; '.join(map(cause_of, messages))}"


def check_runs(spec: LoopSpec, plan: Plan | None = None) -> list[Diagnostic]:
    """What a run refuses; compiles the loop if no plan is given."""
    return [*check_drawn(spec), *check_machine(spec, plan or compile_plan(spec))]


def check_drawn(spec: LoopSpec) -> list[Diagnostic]:
    return [*check_parts(spec), *check_unused(spec)]


def check_machine(spec: LoopSpec, plan: Plan | Placed) -> list[Diagnostic]:
    """Engines, backends, pools and their settings that are unavailable."""
    several = {pool.name: pool.workers for pool in plan.pools if pool.workers > 1}
    return [
        *(finding for weights in plan.weights for finding in _check_weights(spec, weights)),
        *(finding for weights in plan.weights for finding in _check_ranks(weights, several)),
    ]


def _check_weights(spec: LoopSpec, weights: WeightsPlan) -> Iterator[Diagnostic]:
    for home in weights.engines:
        for node in home.writers:
            rollout = getattr(spec.nodes[node], "rollout", None)
            if home.engine not in RUNNABLE_ENGINES:
                names = ", ".join(f"`{name}`" for name in sorted(RUNNABLE_ENGINES))
                what = f"rollout engine `{home.engine}`; supported here: {names}"
                yield refusal(what, f"nodes.{node}.rollout.engine")
                continue
            yield from unused_by_engine(node, rollout, home.engine)
            if home.engine == "remote":
                yield from _elsewhere(spec, weights, node)
            else:
                yield from _spread(spec, home, node)
    if weights.update is None:
        return
    backend, at = weights.update.backend, f"nodes.{weights.name}.training"
    if backend not in RUNNABLE_BACKENDS:
        names = ", ".join(f"`{name}`" for name in sorted(RUNNABLE_BACKENDS))
        yield refusal(f"training backend `{backend}`; supported here: {names}", f"{at}.backend")
        return
    training = getattr(spec.nodes[weights.name], "training", None)
    if backend == "fsdp2":
        yield from _check_tensor(spec, weights.name, weights.update.tensor_parallel)
    yield from unused_by_backend(weights.name, training, backend)
    for field, values in BEYOND_BACKENDS.items():
        if (value := getattr(training, field, None)) in values:
            what, hint = f"`training.{field}: {value}`", INSTEAD.get(field, LATER)
            yield refusal(what, f"{at}.{field}", hint)


def _check_ranks(weights: WeightsPlan, several: Mapping[str, int]) -> Iterator[Diagnostic]:
    """What the processes of a pool cannot do together. `several`: number of processes, for pools
    with more than one."""
    update, ranks = weights.update, several.get(weights.pool)
    if update is not None and update.backend == "single" and ranks is not None:
        what = (
            f"`training.backend: single`, which trains `{weights.name}` in one process, in pool "
            f"`{weights.pool}` with {ranks} processes; `fsdp2` and `deepspeed` train in all of "
            "them, and a pool with one process needs neither"
        )
        hint = "use `fsdp2` or `deepspeed`, leave it unset, or give the pool one process"
        at = f"nodes.{weights.name}.training.backend"
        yield refusal(what, at, hint, Fix.set("Train with fsdp2", at, "fsdp2"))


def _elsewhere(spec: LoopSpec, weights: WeightsPlan, node: str) -> Iterator[Diagnostic]:
    """Nodes that need the weights of a policy whose text a service generates."""
    remote, at = "`rollout.engine: remote`", f"nodes.{node}"
    if weights.trains:
        what = f"{remote} of `{node}`, which learns: a service does not receive new weights"
        hint = "use `torch` or `vllm`; a remote engine generates for policies that do not learn"
        yield refusal(what, f"{at}.rollout.engine", hint)
    model = model_of(spec.nodes[weights.name])
    if model is None or model.type not in WITH_FILES or getattr(model, "lora", None) is not None:
        what = f"{remote} of `{node}`, whose `model` does not name the model of the service"
        hint = "set `model: {type: pretrained, path: ...}`; only its tokenizer is loaded"
        yield refusal(what, f"{at}.model", hint)
    others = [name for name in weights.members if name != node] + [
        name
        for name, other in spec.nodes.items()
        if getattr(model_of(other), "of", None) in weights.members and name not in weights.members
    ]
    if others:
        names = ", ".join(f"`{name}`" for name in others)
        what = f"{remote} of `{node}`, whose weights {names} needs here"
        yield refusal(what, f"{at}.rollout.engine", "give it its own model")
    section = spec.nodes[node]
    if getattr(getattr(section, "read", None), "score", None) == "probability":
        what = f"{remote} of `{node}`, which reads probabilities of labels"
        yield refusal(what, f"{at}.read.score", "parse its text instead (`score: text`)")
    if getattr(getattr(section, "rollout", None), "turns", None) is not None:
        what = f"`rollout.turns` with {remote}, which generates a text in one request"
        yield refusal(what, f"{at}.rollout.turns", "use `torch` or `vllm`")


def _spread(spec: LoopSpec, home: EnginePlan, node: str) -> Iterator[Diagnostic]:
    """An engine over GPUs of several machines: sums after each layer would cross the network."""
    each = hardware_of(spec.hardware).gpus_per_node
    if home.engine == "vllm" and each and home.tensor_parallel > each:
        what = (
            f"`rollout.tensor_parallel: {home.tensor_parallel}` with machines of {each} GPUs; an "
            "engine does not reach over several machines"
        )
        hint = f"set it to {each} at most: the pool then has several engines"
        at = f"nodes.{node}.rollout.tensor_parallel"
        yield refusal(what, at, hint, Fix.set(f"Use {each} GPUs", at, each))


def _check_tensor(spec: LoopSpec, name: str, degree: int) -> Iterator[Diagnostic]:
    """Models whose layers cannot be split."""
    if degree == 1:
        return
    arch, _ = resolve_architecture(spec, name)
    field, hint = "training.tensor_parallel", "leave it unset: `fsdp2` shards weights without it"
    at = f"nodes.{name}.{field}"
    fix = Fix.remove("Shard weights without splitting layers", at)
    if arch is not None and arch.model_type not in SPLIT_FAMILIES:
        names = ", ".join(f"`{family}`" for family in SPLIT_FAMILIES)
        what = f"`{field}: {degree}` with a model of type `{arch.model_type}`; supported types: "
        yield refusal(f"{what}{names}", at, hint, fix)
    if getattr(model_of(spec.nodes[name]), "lora", None) is not None:
        what = f"`{field}: {degree}` with an adapter (`model.lora`), whose layers cannot be split"
        yield refusal(what, at, hint, fix)


def _one_per_cause(spec: LoopSpec, findings: list[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Findings without consequences of others; equal findings about several nodes are merged."""
    kinds = {refused.node for refused in findings if refused.field == "kind"}
    alike: dict[str, list[Diagnostic]] = {}
    for finding in findings:
        follows = finding.node in kinds and finding.field != "kind"
        if not follows and not _touches(spec, finding, kinds):
            alike.setdefault(finding.message, []).append(finding)
    return tuple(_together(group) for group in alike.values())


def _touches(spec: LoopSpec, finding: Diagnostic, nodes: set[str | None]) -> bool:
    """Whether it is about an edge of one of these nodes."""
    head, index, *_ = (*(finding.path or "").split("."), "", "")
    if head != "edges" or not index.isdigit():
        return False
    edge = spec.edges[int(index)]
    return edge.source.node in nodes or edge.target.node in nodes


def _together(group: list[Diagnostic]) -> Diagnostic:
    first, *others = group
    nodes = list(dict.fromkeys(f"`{other.node}`" for other in others if other.node is not None))
    if not nodes:
        return first
    message = f"{first.message} (`{first.node}`, {', '.join(nodes)})"
    return first.model_copy(update={"message": message})
