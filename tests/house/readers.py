"""Who reads each field of the language: section by section, complete.

A reader is a module of the engine or a whole package. Every field of a section is named in one of
its readers (as an attribute, or in quotes), or stands in one of the tables below it.
"""

from typing import Any

DISCRIMINATORS = ("coloop", "kind", "type", "name", "rule", "task")
"""Fields of one literal value: they choose the section, and are read with it."""

READERS: dict[str, tuple[str, ...]] = {
    # the loop
    "LoopSpec": ("runtime", "plan/compile.py", "plan/compile.py"),
    "BaseNode": ("spec/groups.py", "spec/lineage/lineage.py"),
    "Edge": (
        *("spec/graph.py", "spec/lineage/lineage.py", "spec/lineage/walk.py"),
        "plan/stages.py",
    ),
    "Hardware": ("plan/compile.py", "spec/placement.py", "plan/settings/machine.py"),
    "GpuFigures": ("spec/presets.py",),
    "Pool": ("plan/compile.py",),
    "Run": ("runtime", "tracking", "explain/controls/arms.py", "cli/sweep.py"),
    "ControlOf": ("explain/controls/arms.py",),
    "SweepOf": ("cli/sweep.py",),
    "Schedule": ("plan/phases.py", "plan/rows.py", "runtime"),
    "Phase": ("plan/phases.py", "plan/compile.py"),
    "PhaseGroup": ("plan/phases.py",),
    "EpochsOf": ("plan/phases.py",),
    "LearnRule": ("plan/rows.py",),
    "Anneal": ("runtime",),
    "When": ("runtime",),
    "Trigger": ("runtime",),
    "PhaseActions": ("runtime",),
    "TriggerActions": ("runtime",),
    "RefreshOrder": ("runtime",),
    # nodes
    "DatasetNode": ("runtime/roles/dataset.py", "plan/settings/survey.py", "plan/settings/rows.py"),
    **dict.fromkeys(("Curriculum", "DifficultyBand"), ("data/curriculum.py", "runtime/roles")),
    "ActorNode": (
        *(
            "runtime/roles/credit/credit_batch.py",
            "spec/groups.py",
            "spec/groups.py",
            "spec/algorithm.py",
        ),
        "spec/nodes/__init__.py",
    ),
    "EnvironmentNode": ("runtime/roles/environment.py", "spec/nodes/environment.py"),
    **dict.fromkeys(
        ("PythonEnvironment", "EnvironmentProcesses"), ("runtime/roles/rows/outside.py",)
    ),
    **dict.fromkeys(
        ("EntryEnvironment", "TextArenaEnvironment"),
        ("data/tools/bridges.py", "runtime/roles/rows/outside.py"),
    ),
    "CriticNode": ("spec/nodes/__init__.py", "spec/groups.py", "spec/algorithm.py"),
    "ReferenceNode": ("spec/nodes/__init__.py",),
    "LabelCrossEntropy": (
        "algorithms/recipes",
        "runtime/roles/credit/teaching.py",
        "spec/heads.py",
    ),
    "RewardNode": (
        "runtime/roles",
        "spec/nodes/__init__.py",
        "spec/groups.py",
        "spec/algorithm.py",
    ),
    "TemplateNode": ("runtime/roles/template.py", "data/template.py"),
    "FilterNode": ("runtime/roles/filter.py", "spec/refills.py"),
    "PairsNode": ("runtime/roles/pairs.py",),
    "BufferNode": ("runtime/roles/buffer.py",),
    "EvaluateNode": ("runtime/roles/evaluate.py", "runtime", "plan/unrolled.py"),
    "ToolNode": (
        "runtime/roles/tool.py",
        "runtime/roles/generation/policy_tool.py",
        "runtime/roles/rows/outside.py",
        "data/tools/calls.py",
    ),
    "Pack": ("runtime/roles/generation/policy_tool.py",),
    "SearchNode": ("runtime/roles/search.py", "runtime/roles/searching"),
    **dict.fromkeys(
        (
            *("Select", "Budget", "CompletionsByRate", "CompletionBand", "RelativeProgress"),
            *("Expand", "Progressive"),
        ),
        ("runtime/roles/searching",),
    ),
    "Gather": ("spec/lineage/lineage.py",),
    "Fill": (
        "plan/stages.py",
        "runtime/roles/filter.py",
        "spec/nodes/filter.py",
        "spec/refills.py",
    ),
    "PerGroup": ("data/filtering.py",),
    "Resample": ("data/filtering.py",),
    "SideColumns": ("data/pairing.py",),
    "SoftLabels": ("data/pairing.py",),
    "BufferBalance": ("runtime/roles/buffer.py",),
    "BufferClear": ("runtime/roles/buffer.py",),
    "Message": ("data/template.py",),
    "PromptTemplate": ("data/prompting.py",),
    "VerifierNode": ("runtime/roles", "spec/algorithm.py", "spec/groups.py"),
    "VerifierAlgorithms": ("spec/algorithm.py", "runtime/roles"),
    "Read": ("runtime/roles/verifiers", "data/prompting.py"),
    "Criterion": ("data/prompting.py", "spec/answers.py"),
    # what is learned, and how
    **dict.fromkeys(("ActorAlgorithms", "CriticAlgorithms", "RewardAlgorithms"), ("spec/nodes",)),
    "RewardsAlgorithm": ("algorithms/recipes",),
    "PreferenceAlgorithm": ("algorithms/recipes",),
    "DistillationAlgorithm": ("algorithms/recipes", "spec/algorithm.py", "runtime/roles"),
    "Sft": ("algorithms/recipes", "workers/trainer.py"),
    "ValueLoss": ("algorithms/recipes", "spec/algorithm.py"),
    "BradleyTerry": ("algorithms/recipes", "runtime/roles/credit/teaching.py"),
    **dict.fromkeys(("Regression", "Outcome", "ImplicitPrm"), ("algorithms/recipes",)),
    "Kl": ("algorithms/recipes",),
    "ResolvedKl": ("algorithms/recipes",),
    "Correction": ("algorithms/recipes",),
    "OffPolicy": ("algorithms/recipes", "runtime/roles/credit/credit_rows.py"),
    "Credit": (
        "algorithms/recipes",
        "runtime/roles/credit/credit.py",
        "runtime/roles/credit/credit_batch.py",
        "runtime/roles/credit/credit_rows.py",
    ),
    "RoundsCredit": ("runtime/roles/credit/credit_rows.py",),
    "ClassWeights": ("runtime/roles/credit/credit.py",),
    "Balance": ("runtime/roles/credit/credit.py",),
    "Lora": ("workers/training/adapters.py",),
    "Training": (
        "workers/training",
        "spec/dtypes.py",
        "plan/settings/settings.py",
        "plan/settings/updates.py",
    ),
    "Optimizer": ("workers/training",),
    "OtherMatrices": ("workers/training",),
    # weights, and how they write
    "PretrainedModel": ("models", "workers/initial_weights.py"),
    "ScratchModel": ("models", "workers/initial_weights.py"),
    "CopyModel": ("models", "runtime", "workers/initial_weights.py"),
    "RunModel": ("runtime/checkpoints/earlier_runs.py",),
    "SnapshotModel": ("runtime",),
    "SharedModel": ("spec/groups.py",),
    "RefreshEvery": ("runtime",),
    "RefreshAt": ("runtime",),
    "Rollout": (
        *("runtime/roles", "plan/settings/engines.py", "plan/unrolled.py", "spec/groups.py"),
        "workers/initial_weights.py",
    ),
    "JudgeRollout": (
        *("runtime/roles", "plan/settings/engines.py", "plan/unrolled.py", "spec/groups.py"),
        "workers/initial_weights.py",
    ),
    "Service": ("runtime/roles/rows/outside.py",),
    "ChatService": (
        *("runtime/roles/rows/outside.py", "data/services/chat.py", "spec/services.py"),
        "runtime/roles/verifiers/chat_reward.py",
    ),
    "Turns": (
        "runtime/roles/generation/conversations.py",
        "runtime/roles/generation/conversations.py",
    ),
    # where rows come from
    "FileSource": ("data/sources.py", "spec/data.py"),
    "HubSource": ("data/sources.py",),
    "InlineSource": ("data/sources.py",),
    "RowTokens": ("plan/settings/rows.py",),
    "ParseRegex": ("data/template.py",),
    "ParseJson": ("data/template.py",),
    "ParseTag": ("data/template.py",),
    **dict.fromkeys(
        (
            *("AccuracyBand", "NonzeroVariance", "GroupMean", "ScoreRule", "LengthRule"),
            *("RegexRule", "UniqueRule"),
        ),
        ("data/filtering.py",),
    ),
    "PythonRule": ("runtime/roles/filter.py",),
    "Task": ("data/tasks/__init__.py",),
    "OwnTask": ("data/tasks/__init__.py",),
    **{
        f"{name}Task": ("data/tasks/__init__.py", f"data/tasks/{module}.py")
        for name, module in (
            ("Arithmetic", "numbers"),
            ("Countdown", "numbers"),
            ("Sorting", "letters"),
            ("LastLetter", "letters"),
            ("Knights", "knights"),
            ("Counting", "letters"),
            ("Calculator", "numbers"),
            ("Knowledge", "knowledge"),
            ("Proof", "proof"),
            ("Preference", "preference"),
            ("ReadDebate", "knowledge"),
            ("TwoHalves", "numbers"),
            ("Images", "images"),
        )
    },
    # rewards
    **dict.fromkeys(
        ("Builtin", "TaskReward", "OneMinus", "Margin", "First", "OtherRows"),
        ("data/rewards/builtin.py",),
    ),
    **dict.fromkeys(
        ("ExactMatch", "MathEqual", "Choice", "JsonSchema", "Column"), ("data/rewards/texts.py",)
    ),
    **dict.fromkeys(
        ("Format", "Length", "Regex", "NgramRepetition", "Overlong"), ("data/rewards/shapes.py",)
    ),
    "CodeTests": ("data/rewards/programs.py",),
    "ReasoningGym": ("data/rewards/gym.py",),
    "ReasoningGymTask": ("data/tasks/gym.py", "data/tasks/__init__.py"),
    "Language": ("data/rewards/texts.py",),
    **dict.fromkeys(
        ("Weighted", "Band", "Agreement", "Gate", "TurnAllocation", "Constant", "Coin"),
        ("data/rewards/combine.py",),
    ),
    "PythonSource": ("runtime/roles/rows/outside.py",),
    "ModelSource": ("runtime/roles/reward.py",),
    "RemoteSource": ("runtime/roles/rows/outside.py",),
    "ChatSource": (
        *("runtime/roles/rows/outside.py", "data/services/chat.py", "spec/services.py"),
        "runtime/roles/verifiers/chat_reward.py",
    ),
    "ScoreAs": ("data/rewards/user_code.py",),
}
"""By section, the modules that a run goes through and that name its fields."""

LATER: dict[str, str] = {}
"""Sections that are drawn, planned and estimated only."""

ELSEWHERE = {
    ("LoopSpec", "mode"): "the page: what it offers, and what a node begins as",
    ("LoopSpec", "description"): "people",
    ("LoopSpec", "layout"): "the page",
    ("BaseNode", "note"): "people",
    ("Phase", "note"): "people",
    ("PhaseGroup", "note"): "people",
    ("PhaseGroup", "name"): "people, and findings about it",
    ("Rollout", "expected_tokens"): "the estimate",
    ("JudgeRollout", "expected_tokens"): "the estimate",
    **{
        ("JudgeRollout", name): "refused as a field of `Rollout`"
        for name in ("gpu_memory_utilization", "tensor_parallel", "images")
    },
    ("Hardware", "price_per_gpu_hour"): "the cost in estimates",
    **{
        ("GpuFigures", name): "the estimate, through the facts of the GPU"
        for name in ("memory_gib", "bf16_tflops", "bandwidth", "link")
    },
    ("Hardware", "memory_budget"): "the resolver, and the finding `memory.over_budget`",
    ("SearchNode", "and_return"): "the section: it has one value",
    ("CompletionsByRate", "by"): "the section: it has one value",
}
"""Fields that no run reads, with who reads them instead."""

REFUSED: dict[tuple[str, str], tuple[str, Any]] = {
    **{
        ("Training", f"{which}_parallel"): (f"nodes.actor.training.{which}_parallel", 2)
        for which in ("tensor", "pipeline", "context", "expert")
    },
    ("Training", "implementation"): ("nodes.actor.training.implementation", "trl"),
    ("Training", "offload"): ("nodes.actor.training.offload", "optimizer"),
    ("Rollout", "gpu_memory_utilization"): ("nodes.actor.rollout.gpu_memory_utilization", 0.5),
    ("Rollout", "tensor_parallel"): ("nodes.actor.rollout.tensor_parallel", 2),
    ("Rollout", "images"): ("nodes.actor.rollout.images", True),
}
"""Fields that nothing on this path reads: a value that makes a difference is refused by name."""

WANTS: dict[str, dict[str, Any]] = {
    "per": {"nodes.exact.join": {"gather": "problems"}},
    "pipeline_parallel": {"nodes.actor.training.backend": "megatron"},
}
"""What the language asks for beside a field."""
