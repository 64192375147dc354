"""Memory and time of a loop, before it runs: arithmetic over architecture facts and hardware
presets.

`estimate` gives the numbers, `explain` the numbers with everything they rest on, `fit` settings
under which a loop stays within its budget. Needs no torch; no file is opened but under a `root`
that the caller gives.
"""

from coloop.plan.cost.estimator import estimate, explain
from coloop.plan.cost.report import Estimate, Explanation

__all__ = ["Estimate", "Explanation", "estimate", "explain"]
