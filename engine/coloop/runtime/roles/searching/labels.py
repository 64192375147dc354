"""Labels of steps from the chances of what was written up to their ends."""

from coloop.runtime.roles.searching.trees import Chances
from coloop.spec.search import RelativeProgress, StepLabels


def labels_of(
    chances: Chances, rule: StepLabels, *, before: float | None, stop_at_zero: bool
) -> dict[int, float]:
    """By the token in which a step ends: `soft` its chance, `hard` whether it has any, or whether
    it keeps enough of the chance before it.

    Args:
        before: chance of the first step's beginning, for relative progress.
        stop_at_zero: steps behind the first one without a chance get no label.
    """
    found: dict[int, float] = {}
    for place, chance in sorted(chances.items()):
        label = _label(chance, before, rule)
        if label is not None:
            found[place] = label
        if stop_at_zero and chance == 0:
            break
        before = chance
    return found


def _label(chance: float, before: float | None, rule: StepLabels) -> float | None:
    if rule == "soft":
        return chance
    if rule == "hard":
        return float(chance > 0)
    assert isinstance(rule, RelativeProgress)
    if before is None:
        return None
    return float(before > 0 and chance / before >= rule.relative_progress)
