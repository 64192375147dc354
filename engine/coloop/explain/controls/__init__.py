"""Controls: what a loop would reach without the part that is said to help."""

from coloop.explain.controls.arms import (
    ArmLoop,
    ArmRun,
    ablation_of,
    arm_of,
    arms_of_preset,
    as_arm,
    runs_of,
    seeded,
)
from coloop.explain.controls.comparing import Arm, Comparison, Curve, Group, curve_of
from coloop.explain.controls.derive import (
    CONTROL_KINDS,
    MEANINGS,
    Control,
    ControlKind,
    beginning,
    control_of,
    controls_of,
    metric_in,
)
from coloop.explain.controls.roles import roles_of

__all__ = [
    "CONTROL_KINDS",
    "MEANINGS",
    "Arm",
    "ArmLoop",
    "ArmRun",
    "Comparison",
    "Control",
    "ControlKind",
    "Curve",
    "Group",
    "ablation_of",
    "arm_of",
    "arms_of_preset",
    "as_arm",
    "beginning",
    "control_of",
    "controls_of",
    "curve_of",
    "metric_in",
    "roles_of",
    "runs_of",
    "seeded",
]
