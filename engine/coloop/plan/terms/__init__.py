"""The formula, the values and the sources behind every number of an estimate."""

from coloop.plan.terms.formula import Line
from coloop.plan.terms.terms import Term, Terms, terms_of

__all__ = ["Line", "Term", "Terms", "terms_of"]
