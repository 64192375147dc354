"""Controls: what a loop would reach without the part that is said to help."""

from coloop.explain.controls.arms import (
    ArmLoop,
    ArmRun,
    ablation_of,
    arm_of,
    arms_of_preset,
    runs_of,
    seeded,
)
from coloop.explain.controls.comparing import Arm, Comparison, Curve, curve_of
from coloop.explain.controls.derive import (
    CONTROL_KINDS,
    MEANINGS,
    Control,
    ControlKind,
    control_of,
    controls_of,
)

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
    "ablation_of",
    "arm_of",
    "arms_of_preset",
    "control_of",
    "controls_of",
    "curve_of",
    "runs_of",
    "seeded",
]
