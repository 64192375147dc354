"""How many texts a search writes for one row."""

from typing import Final

from coloop.spec.nodes import SearchNode
from coloop.spec.search import Expand

COMPLETIONS_BY_RATE: Final = 8
"""Completions of a text where its problem's pass rate decides."""
BEGINNINGS: Final = 1
"""Beginnings that a binary search completes, as a mean over all that it may do: one that is done
looks at one to three, and problems that are always or never solved have nothing to search."""


def texts_of_search(section: SearchNode) -> float:
    """Texts written for a row where no budget of tokens ends it first.

    Completions of each step; of a binary search those of the prompt and of each beginning that a
    search looks at; of a tree the branches of the node that each visit opens.
    """
    given = section.completions
    each = given if isinstance(given, int) else COMPLETIONS_BY_RATE
    searches = section.budget.searches_per_row
    match section.method:
        case "binary_search":
            return float(each * (1 + BEGINNINGS * (searches or 1)))
        case "puct" | "and_or":
            texts = branches(section.expand or Expand()) * (searches or 1)
            return float(min(texts, section.budget.nodes or texts))
    return float(searches or each)


def branches(expand: Expand) -> int:
    """Branches drawn at a node when it is first visited."""
    widening = expand.progressive
    return expand.samples if widening is None else min(expand.samples, max(1, int(widening.c)))
