"""On what a loop runs, and what a run keeps: `hardware` and `run`."""

from typing import Literal, Self

from pydantic import model_validator

from coloop.spec.base import (
    MetricName,
    Name,
    NodeId,
    Number,
    Section,
    Text,
    Whole,
    either,
    problem,
    setting,
)


class Pool(Section):
    """A part of the hardware."""

    gpus: Whole | None = setting(None, ge=1, le=65_536)
    """GPUs of the pool."""
    workers: Whole | None = setting(None, ge=1, le=4096)
    """On a CPU: processes of the pool."""

    _has_one = either("gpus", "workers", "set either `gpus`, or `workers` on a CPU")


class GpuFigures(Section, title="figures of the GPU"):
    """Data of a GPU. With a GPU that is known here, they replace its own; for any other, memory,
    bandwidth and speed are needed."""

    memory_gib: Number | None = setting(None, gt=0, le=100_000, unit="GiB", short="{} GiB")
    """Memory that a process can use, in GiB."""
    bf16_tflops: Number | None = setting(None, gt=0, le=1_000_000, short="{} TFLOP/s")
    """Dense bfloat16 operations per second, in TFLOP/s."""
    bandwidth: Number | None = setting(None, gt=0, le=1_000_000, short="{} GB/s")
    """Memory read or written per second, in GB/s."""
    link: Number | None = setting(None, gt=0, le=1_000_000, level="advanced")
    """Bandwidth to another GPU in the same machine, in one direction, in GB/s; null: that of the
    GPU, or PCIe 4 (31)."""


class Hardware(Section):
    """What a loop runs on: a preset, or nodes and GPUs."""

    preset: Name | None = setting(None, widget="select", choices="hardware")
    """A preset of presets/hardware, e.g. `cpu`, `8xH100`; null with `gpu`, else `cpu`."""
    nodes: Whole | None = setting(None, ge=1, le=4096)
    """Number of machines, if no preset is given."""
    gpus_per_node: Whole | None = setting(None, ge=1, le=64)
    """GPUs per machine."""
    gpu: Name | None = setting(None)
    """The GPU, e.g. `H100-80GB`; any name with `figures`."""
    figures: GpuFigures | None = setting(None, level="advanced")
    """Figures of the GPU, if it is not known here or yours differ; null: those of its name."""
    price_per_gpu_hour: Number | None = setting(None, ge=0, le=1_000_000, level="advanced")
    """Price of one GPU for an hour, in any currency, for the cost in estimates; null: no cost."""
    memory_budget: Number = setting(0.9, gt=0, le=1, widget="slider")
    """Share of each GPU's memory that may be planned for."""
    pools: dict[Name, Pool] = setting(default_factory=dict, level="advanced")
    """Parts of the hardware that work in parallel; none: one pool, `main`, with all of it; on a CPU
    with as many processes as are predicted to be fastest."""

    @model_validator(mode="after")
    def _is_one_of_two(self) -> Self:
        explicit = [
            name for name in ("nodes", "gpus_per_node", "gpu") if getattr(self, name) is not None
        ]
        if self.figures is not None and self.preset_name == "cpu":
            raise problem("conflict", "belongs only to hardware with GPUs", field="figures")
        if self.preset is not None and explicit:
            raise problem("conflict", "does not go together with `preset`", field=explicit[0])
        if explicit and len(explicit) < 3:
            missing = next(
                name for name in ("gpu", "gpus_per_node", "nodes") if name not in explicit
            )
            raise problem(
                "missing_field", "`nodes`, `gpus_per_node` and `gpu` go together", field=missing
            )
        return self

    @property
    def preset_name(self) -> str | None:
        """The preset that applies: the named one, `cpu` for an empty section, else None."""
        return self.preset or (None if self.gpu is not None else "cpu")


ControlKind = Literal[
    "full", "frozen", "shuffled", "plain", "constant", "random", "no_tool", "no_filter"
]
"""What is left out of a loop to see what it earns; `full`: nothing."""


class ControlOf(Section, title="control of a run"):
    """Which run this one is compared with."""

    of: Name = setting(title="Compared with", short="control of {}")
    """Id of that run, or the name of its loop if there is no run of it yet."""
    kind: ControlKind = setting()
    """What differs from its loop; `full`: only the seed."""
    learner: NodeId | None = setting(None, widget="node")
    """The main learner; null: the one that the main metric of the loop measures."""


class SweepOf(Section, title="sweep"):
    """The group of runs that try values of settings, to which this one belongs."""

    of: Name = setting(title="Group of the sweep", short="sweep {}")
    """Name of the group."""
    fields: tuple[Text, ...] = setting(min_length=1, max_length=20, title="Settings")
    """Paths of the settings whose values are tried, e.g. `nodes.actor.training.optimizer.lr`; the
    values of this run are at these paths."""


TrackerName = Literal["tensorboard", "wandb", "mlflow", "trackio"]


class Run(Section):
    """What a run starts from and keeps."""

    seed: Whole = setting(0, ge=0)
    """Every random number derives from it, the node, the step and the row."""
    checkpoint_every: Whole | None = setting(
        None, ge=1, hot=True, unit="steps", section="checkpoint", short="every {} steps"
    )
    """Steps between checkpoints; null: every ten minutes, at the end and when stopped."""
    keep: Whole = setting(
        2, ge=1, level="advanced", hot=True, section="checkpoint", short="{} kept"
    )
    """Number of newest checkpoints to keep; the best one is kept as well."""
    best: MetricName | None = setting(
        None, choices="metrics", reference="metric", section="checkpoint", short="best by {}"
    )
    """Metric (`node.metric`) that defines the best checkpoint; higher is better."""
    storage: Text | None = setting(None, level="advanced", widget="path", section="checkpoint")
    """Where checkpoints and samples go: a folder or an fsspec URL; null: the run folder."""
    report_to: tuple[TrackerName, ...] = setting((), level="advanced", short="{}")
    """Trackers that receive metrics, texts and alerts while the run goes on. Keys and addresses are
    those of each tracker's own settings."""
    project: Text | None = setting(None, level="advanced", short="project {}")
    """Project or experiment in the trackers; null: `coloop`."""
    report_checkpoints: bool = setting(False, level="advanced")
    """Whether checkpoints are sent to the trackers as artifacts."""
    control: ControlOf | None = setting(None, level="expert")
    """The run that this one is a control of; null: none. It changes nothing in the run."""
    sweep: SweepOf | None = setting(None, level="expert")
    """The sweep that this run belongs to; null: none. It changes nothing in the run."""
