"""What this version can draw, check, plan and estimate but not yet run: refused by name, never by a
crash.

`check_drawn` looks at what is drawn, `check_machine` at what a machine would have to do.
"""

from collections.abc import Iterator, Mapping

from coloop.plan.compile import compile_plan
from coloop.plan.judging import check_judges
from coloop.plan.refusal import LATER, refusal
from coloop.plan.searches import SEARCH_HANDLES, objections
from coloop.plan.settings.facts import resolve_architecture
from coloop.plan.settings.settings import SPLIT_FAMILIES
from coloop.plan.types import EnginePlan, Plan, WeightsPlan
from coloop.plan.unread import check_unread, unread_by_backend, unread_by_engine
from coloop.spec.algorithm import ValueLoss, node_algorithms
from coloop.spec.algorithms.registry import RUNNABLE_ALGORITHMS, family_of
from coloop.spec.diagnostics import Change, Diagnostic, Fix
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import weights_groups
from coloop.spec.heads import head_of, heads_of_group
from coloop.spec.nodes import RUNNABLE_KINDS, EvaluateNode, ToolNode, model_of
from coloop.spec.reward import RUNNABLE_REWARD_SOURCES
from coloop.spec.rollout import RUNNABLE_ENGINES
from coloop.spec.training import RUNNABLE_BACKENDS

TOOL_HANDLES = frozenset({("tool", "tools"), ("policy", "policy")})
WRITER_HANDLES = frozenset({("tool", "tools")})
"""What tools and writers may call, by the ports of the edge."""
BEYOND_BACKENDS: dict[str, tuple[object, ...]] = {
    "gradient_checkpointing": ("selective", "offload"),
    "dtype": ("fp8", "float16"),
}
"""Values of `training` that no backend carries out: float16 would want its losses scaled."""
INSTEAD = {"dtype": "leave it unset, or use `bfloat16`"}
"""By field, what does run."""
WITH_FILES = ("pretrained", "scratch")
"""Types of models that bring a tokenizer of their own."""


def check_runs(spec: LoopSpec, plan: Plan | None = None) -> list[Diagnostic]:
    """What a run refuses.

    Args:
        plan: where the caller has it already; else the loop is compiled here.
    """
    return [*check_drawn(spec), *check_machine(spec, plan or compile_plan(spec))]


def check_drawn(spec: LoopSpec) -> list[Diagnostic]:
    """Parts of the loop that no run carries out, on whatever machine."""
    return [
        *_check_nodes(spec),
        *_check_verifiers(spec),
        *(
            refusal(what, node=node, field=field, hint=hint)
            for what, node, field, hint in objections(spec)
        ),
        *check_judges(spec),
        *check_unread(spec),
        *_check_edges(spec),
        *_check_algorithms(spec),
        *_check_models(spec),
        *_check_critics(spec),
        *_check_measured_ports(spec),
    ]


def check_machine(spec: LoopSpec, plan: Plan) -> list[Diagnostic]:
    """Engines, backends, pools and settings of theirs that are not there."""
    found = []
    for weights in plan.weights:
        for home in weights.engines:
            for node in home.writers:
                rollout = getattr(spec.nodes[node], "rollout", None)
                if home.engine not in RUNNABLE_ENGINES:
                    names = ", ".join(f"`{name}`" for name in sorted(RUNNABLE_ENGINES))
                    what = f"rollout engine `{home.engine}`; supported here: {names}"
                    found.append(refusal(what, node=node, field="rollout.engine"))
                else:
                    found += unread_by_engine(node, rollout, home.engine)
                    if home.engine == "remote":
                        found += _elsewhere(spec, weights, node)
                    else:
                        found += _spread(home, node, rollout)
        if weights.update is None:
            continue
        backend = weights.update.backend
        if backend not in RUNNABLE_BACKENDS:
            names = ", ".join(f"`{name}`" for name in sorted(RUNNABLE_BACKENDS))
            what = f"training backend `{backend}`; supported here: {names}"
            found.append(refusal(what, node=weights.name, field="training.backend"))
        else:
            training = getattr(spec.nodes[weights.name], "training", None)
            if backend == "fsdp2":
                found += _check_tensor(spec, weights.name, weights.update.tensor_parallel)
            found += unread_by_backend(weights.name, training, backend)
            found += _beyond(weights.name, training)
    several = {pool.name: pool.workers for pool in plan.pools if pool.workers > 1}
    for weights in plan.weights:
        found += _check_ranks(weights, several)
    return found


def _check_ranks(weights: WeightsPlan, several: Mapping[str, int]) -> Iterator[Diagnostic]:
    """What the processes of a pool cannot do together.

    Args:
        several: processes of the pools that have more than one.
    """
    update, ranks = weights.update, several.get(weights.pool)
    if update is not None and update.backend == "single" and ranks is not None:
        what = (
            f"`training.backend: single`, which trains `{weights.name}` in one process, in pool "
            f"`{weights.pool}` with {ranks} processes; `fsdp2` and `deepspeed` train in all of "
            "them, and a pool with one process needs neither"
        )
        hint = "use `fsdp2` or `deepspeed`, leave it unset, or give the pool one process"
        path = f"nodes.{weights.name}.training.backend"
        change = Change(op="set", path=path, value="fsdp2")
        fixes = (Fix(title="Train with fsdp2", changes=(change,)),)
        yield refusal(what, node=weights.name, field="training.backend", hint=hint, fixes=fixes)


def _elsewhere(spec: LoopSpec, weights: WeightsPlan, node: str) -> Iterator[Diagnostic]:
    """What wants weights of a policy for which a service writes."""
    remote, field = "`rollout.engine: remote`", "rollout.engine"
    if weights.trains:
        what = f"{remote} of `{node}`, which learns: a service does not receive new weights"
        hint = "use `torch` or `vllm`; a remote engine generates for policies that do not learn"
        yield refusal(what, node=node, field=field, hint=hint)
    model = model_of(spec.nodes[weights.name])
    if model is None or model.type not in WITH_FILES or getattr(model, "lora", None) is not None:
        what = f"{remote} of `{node}`, whose `model` does not name the model of the service"
        hint = "set `model: {type: pretrained, path: ...}`; only its tokenizer is loaded"
        yield refusal(what, node=node, field="model", hint=hint)
    others = [name for name in weights.members if name != node] + [
        name
        for name, other in spec.nodes.items()
        if getattr(model_of(other), "of", None) in weights.members and name not in weights.members
    ]
    if others:
        names = ", ".join(f"`{name}`" for name in others)
        what = f"{remote} of `{node}`, whose weights {names} needs here"
        yield refusal(what, node=node, field=field, hint="give it its own model")
    section = spec.nodes[node]
    if getattr(getattr(section, "read", None), "score", None) == "probability":
        what = f"{remote} of `{node}`, which reads probabilities of labels"
        yield refusal(
            what, node=node, field="read.score", hint=("parse its text instead (`score: text`)")
        )
    if getattr(getattr(section, "rollout", None), "turns", None) is not None:
        what = f"`rollout.turns` with {remote}, which generates a text in one request"
        yield refusal(what, node=node, field="rollout.turns", hint="use `torch` or `vllm`")


def _spread(home: EnginePlan, node: str, rollout: object) -> Iterator[Diagnostic]:
    """An engine over several GPUs, which was decided because one has no room for the weights."""
    if home.tensor_parallel > 1 and getattr(rollout, "tensor_parallel", None) is None:
        what = (
            f"an engine over {home.tensor_parallel} GPUs, which the weights of `{node}` need; each "
            f"process of pool `{home.pool}` has its own engine on one GPU"
        )
        hint = "use GPUs with more memory, a smaller model, or fewer other nodes in its pool"
        yield refusal(what, node=node, field="rollout.tensor_parallel", hint=hint)


def _check_tensor(spec: LoopSpec, name: str, degree: int) -> Iterator[Diagnostic]:
    """Models whose layers cannot be shared."""
    if degree == 1:
        return
    arch, _ = resolve_architecture(spec, name)
    field, hint = "training.tensor_parallel", "leave it unset: `fsdp2` shards weights without it"
    change = Change(op="remove", path=f"nodes.{name}.{field}")
    fixes = (Fix(title="Shard weights without splitting layers", changes=(change,)),)
    if arch is not None and arch.model_type not in SPLIT_FAMILIES:
        names = ", ".join(f"`{family}`" for family in SPLIT_FAMILIES)
        what = (
            f"`{field}: {degree}` with a model of type `{arch.model_type}`; supported types: "
            f"{names}"
        )
        yield refusal(what, node=name, field=field, hint=hint, fixes=fixes)
    if getattr(model_of(spec.nodes[name]), "lora", None) is not None:
        what = f"`{field}: {degree}` with an adapter (`model.lora`), whose layers cannot be split"
        yield refusal(what, node=name, field=field, hint=hint, fixes=fixes)


def _beyond(node: str, training: object) -> list[Diagnostic]:
    """Values that ask for more than backends do."""
    return [
        refusal(
            f"`training.{field}: {value}`",
            node=node,
            field=f"training.{field}",
            hint=INSTEAD.get(field, LATER),
        )
        for field, values in BEYOND_BACKENDS.items()
        if (value := getattr(training, field, None)) in values
    ]


def _check_nodes(spec: LoopSpec) -> Iterator[Diagnostic]:
    for name, node in spec.nodes.items():
        source = getattr(node, "source", None)
        if getattr(source, "task", None) == "images":
            yield refusal("tasks with images", node=name, field="source.task")
        if node.kind not in RUNNABLE_KINDS:
            yield refusal(f"nodes of kind {node.kind} (node `{name}`)", node=name, field="kind")
        kind = getattr(source, "type", None)
        if node.kind == "reward" and kind not in RUNNABLE_REWARD_SOURCES:
            yield refusal(f"rewards of type {kind} (node `{name}`)", node=name, field="source")
        if isinstance(node, ToolNode):
            yield from _check_tool(spec, name, node)
        rollout = getattr(node, "rollout", None)
        if rollout is not None and rollout.images:
            yield refusal("`rollout.images`", node=name, field="rollout.images")


def _check_verifiers(spec: LoopSpec) -> Iterator[Diagnostic]:
    """What judges in words cannot be asked."""
    for name, node in spec.nodes.items():
        if node.kind != "verifier" or node.method != "generative":
            continue
        if node.read.granularity != "sequence" and node.read.step_verdicts is None:
            what = f"`read.granularity: {node.read.granularity}` of a verifier that generates"
            hint = "set how it names its steps: `read.step_verdicts`"
            yield refusal(what, node=name, field="read.granularity", hint=hint)
        if node.read.numbers is not None and node.per is None:
            what = "`read.numbers` without `per: row`"
            hint = "gather the rows that are judged together: `join: {gather: ...}`, `per: row`"
            yield refusal(what, node=name, field="read.numbers", hint=hint)
        if node.per is not None and node.read.numbers is None:
            what = "one verdict as the score of every gathered row"
            hint = "set how its text names each row and its number: `read.numbers`"
            yield refusal(what, node=name, field="per", hint=hint)
        if node.rollout is not None and spec.graph.edges_into(name, "labels"):
            what = "the port `labels` of a verifier that generates"
            yield refusal(what, node=name, field="algorithm.labels")
        for edge in spec.graph.edges_into(name, "reference"):
            others = spec.graph.edges_out_of(edge.source.node, "log_probs")
            if len(others) > 1 and spec.graph.edges_into(edge.source.node, "pairs"):
                what = "a reference of pairs that a verifier shares with another learner"
                hint = "give each its own reference: a judge reads pairs after its prompts"
                yield refusal(what, node=edge.source.node, hint=hint)


def _check_tool(spec: LoopSpec, name: str, node: ToolNode) -> Iterator[Diagnostic]:
    """Tools that ask somebody else, or look through rows that the loop makes."""
    for edge in spec.graph.edges_into(name, "policy"):
        policy = edge.source.node
        if spec.graph.edges_into(policy, "tools"):
            what = f"a policy with tools used as a tool (node `{policy}`)"
            yield refusal(what, node=policy, field="rollout.turns")
    for edge in spec.graph.edges_into(name, "tools"):
        if getattr(spec.nodes[edge.source.node], "type", None) in ("model", "environment"):
            what = f"`{edge.source.node}` wrapped by another tool"
            yield refusal(what, node=name, field="type")
    for edge in spec.graph.edges_out_of(name, "tool") if node.type == "environment" else ():
        caller = edge.target.node
        worlds = [
            one.source.node
            for one in spec.graph.edges_into(caller, "tools")
            if getattr(spec.nodes[one.source.node], "type", None) == "environment"
        ]
        if spec.kind_of(caller) == "verifier":
            what = f"an environment whose policy is a verifier (node `{caller}`)"
            yield refusal(what, node=name, field="type")
        if len(worlds) > 1 and worlds[0] == name:
            yield refusal(f"several environments for one policy (node `{caller}`)", node=name)
    for edge in spec.graph.edges_into(name, "documents"):
        if spec.kind_of(edge.source.node) != "dataset":
            what = f"documents that `{edge.source.node}` produces during the run"
            hint = (
                "connect a dataset to `documents`: its rows are indexed once, when the run starts"
            )
            yield refusal(what, node=name, field="documents", hint=hint)


def _check_edges(spec: LoopSpec) -> Iterator[Diagnostic]:
    for index, edge in enumerate(spec.edges):
        way, target = (edge.source.port, edge.target.port), spec.kind_of(edge.target.node)
        runs = {"search": SEARCH_HANDLES, "tool": TOOL_HANDLES}.get(target or "", WRITER_HANDLES)
        if spec.graph.is_handle(edge) and way not in runs:
            yield refusal(f"handles (edge {edge.label})", field=f"edges.{index}")


def _check_algorithms(spec: LoopSpec) -> Iterator[Diagnostic]:
    for node in spec.nodes:
        for port, entries in node_algorithms(spec, node).items():
            for entry in entries:
                name = str(entry.name)
                field = f"algorithm.{port}"
                if family_of(name) not in RUNNABLE_ALGORITHMS:
                    yield refusal(f"algorithm `{name}`", node=node, field=f"{field}.name")


def _check_models(spec: LoopSpec) -> Iterator[Diagnostic]:
    for name, node in spec.nodes.items():
        model = model_of(node)
        if model is None:
            continue
        if getattr(model, "quantization", None) is not None:
            yield refusal("`model.quantization`", node=name, field="model.quantization")


def _check_critics(spec: LoopSpec) -> Iterator[Diagnostic]:
    for group in weights_groups(spec).values():
        lora = getattr(model_of(spec.nodes[group.name]), "lora", None)
        if lora is not None and len(heads_of_group(spec, group.members)) > 1:
            scoring = next(one for one in group.members if head_of(spec.nodes[one]) == "score")
            what = f"a score head and text generation on one adapter (node `{scoring}`)"
            hint = f"give `{scoring}` its own adapter: `lora` beside `with`"
            yield refusal(what, node=scoring, field="model", hint=hint)
    for name in spec.nodes:
        lambdas = {
            entry.gae_lambda
            for entry in node_algorithms(spec, name).get("returns", ())
            if isinstance(entry, ValueLoss)
        }
        if len(lambdas) > 1:
            what = f"several values of `gae_lambda` for one critic (node `{name}`)"
            hint = "a critic learns returns of one `gae_lambda`; use one critic for each"
            yield refusal(what, node=name, field="algorithm.returns", hint=hint)


def _check_measured_ports(spec: LoopSpec) -> Iterator[Diagnostic]:
    """Teaching ports whose loss an evaluation cannot measure."""
    for name, node in spec.nodes.items():
        if not isinstance(node, EvaluateNode):
            continue
        for port in node.of:
            taught = port.partition(".")[2]
            if taught == "rewards":
                what = f"`of: [{port}]` (node `{name}`)"
                hint = "the loss on rewards depends on the rows of a learning step: "
                hint += "connect their `scores` here instead (`metrics: [score]`)"
                yield refusal(what, node=name, field="of", hint=hint)
            if taught == "returns" and node.instead_of is None:
                what = f"`of: [{port}]` without `instead_of` (node `{name}`)"
                hint = "returns need texts that are generated and scored: set `instead_of` to "
                hint += "the dataset that the probe's rows replace"
                yield refusal(what, node=name, field="of", hint=hint)
