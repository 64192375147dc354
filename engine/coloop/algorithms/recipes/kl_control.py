"""State of algorithms for checkpoints: an adaptive KL coefficient, and frequencies of classes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from coloop.algorithms.kl import adapted_coefficient
from coloop.spec.algorithm import ResolvedKl, ResolvedRewards


@dataclass(slots=True)
class KlController:
    coefficient: float
    written: float
    """The coefficient in the settings; if it changes there, the controller restarts from it."""

    @classmethod
    def of(cls, kl: ResolvedKl) -> "KlController":
        return cls(coefficient=kl.coefficient, written=kl.coefficient)

    def applied(self, settings: ResolvedRewards) -> ResolvedRewards:
        """The settings with the current coefficient."""
        assert settings.kl is not None
        if settings.kl.coefficient != self.written:
            self.coefficient = self.written = settings.kl.coefficient
        kl = settings.kl.model_copy(update={"coefficient": self.coefficient})
        return replace(settings, kl=kl)

    def observe(self, measured: float, kl: ResolvedKl, *, samples: int) -> None:
        """Adapt the coefficient to the KL measured in an update of `samples` rows."""
        if kl.target is not None:
            self.coefficient = adapted_coefficient(
                self.coefficient, measured, target=kl.target, horizon=kl.horizon, samples=samples
            )

    def state(self) -> dict[str, float]:
        return {"coefficient": self.coefficient, "written": self.written}

    @classmethod
    def from_state(cls, state: Mapping[str, float]) -> "KlController":
        return cls(coefficient=state["coefficient"], written=state["written"])


# Weights of classes by moving averages of their frequencies, scaled to a mean of 1 over these. RL
# Tango (arXiv 2505.15034) has the inverse square root.

EXPONENTS: Mapping[str, float] = {"inverse_sqrt": 0.5, "inverse": 1.0}

Frequencies = Mapping[float, float]  # by class, its share of the rows; together 1


def moved_frequencies(
    before: Frequencies, classes: Sequence[float | None], *, ema: float
) -> Frequencies:
    """f ← ema · f + (1 − ema) · share in this step; at first the shares.

    `classes`: the class of each row; None is left out.
    """
    counts = Counter(label for label in classes if label is not None)
    total = sum(counts.values())
    if not total:
        return before
    shares = {label: count / total for label, count in counts.items()}
    if not before:
        return dict(sorted(shares.items()))
    known = sorted({*before, *shares})
    return {
        label: ema * before.get(label, 0.0) + (1 - ema) * shares.get(label, 0.0) for label in known
    }


def class_weights(frequencies: Frequencies, *, shape: str) -> dict[float, float]:
    """Weight of each class: f^-p / Σ f^(1-p), with p by `shape`."""
    power = EXPONENTS[shape]
    there = {label: share for label, share in frequencies.items() if share > 0}
    mean = sum(share ** (1 - power) for share in there.values())
    return {label: share**-power / mean for label, share in there.items()}
