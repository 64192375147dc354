"""Memory and time of a loop before it runs, computed from architectures and hardware presets.

`estimate` gives the numbers, `explain` also what they are based on, `fit` settings within a budget.
Needs no torch, and opens files only below a given `root`.
"""

from coloop.plan.cost.estimator import estimate, explain
from coloop.plan.cost.report import Estimate, Explanation

__all__ = ["Estimate", "Explanation", "estimate", "explain"]
