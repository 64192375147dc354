"""A KL coefficient that follows a target, as state that a checkpoint can hold.

Whoever applies the KL (the trainer in the loss, the credit in the reward) owns one controller for
each algorithm that has a target, and tells it what was measured.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from coloop.algorithms.kl import adapted_coefficient
from coloop.spec.algorithm import ResolvedKl, ResolvedRewards


@dataclass(slots=True)
class KlController:
    """The coefficient of the moment."""

    coefficient: float
    written: float
    """The coefficient that the settings had; where it is edited, the controller starts anew."""

    @classmethod
    def of(cls, kl: ResolvedKl) -> "KlController":
        return cls(coefficient=kl.coefficient, written=kl.coefficient)

    def applied(self, settings: ResolvedRewards) -> ResolvedRewards:
        """The settings with the coefficient of the moment."""
        assert settings.kl is not None
        if settings.kl.coefficient != self.written:
            self.coefficient = self.written = settings.kl.coefficient
        return replace(settings, kl=replace(settings.kl, coefficient=self.coefficient))

    def observe(self, measured: float, kl: ResolvedKl, *, samples: int) -> None:
        """Move the coefficient after an update of so many rows."""
        if kl.target is not None:
            self.coefficient = adapted_coefficient(
                self.coefficient, measured, target=kl.target, horizon=kl.horizon, samples=samples
            )

    def state(self) -> dict[str, float]:
        return {"coefficient": self.coefficient, "written": self.written}

    @classmethod
    def from_state(cls, state: Mapping[str, float]) -> "KlController":
        return cls(coefficient=state["coefficient"], written=state["written"])
