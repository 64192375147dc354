"""Ways of searching, by the name that `method` takes, in a file each."""

from typing import Final

from coloop.runtime.roles.searching.and_or import AndOr
from coloop.runtime.roles.searching.binary_search import BinarySearch
from coloop.runtime.roles.searching.monte_carlo import MonteCarlo
from coloop.runtime.roles.searching.text_tree import Puct
from coloop.runtime.roles.searching.tree_expansion import Method

METHODS: Final[dict[str, Method]] = {
    "and_or": AndOr(),
    "binary_search": BinarySearch(),
    "monte_carlo": MonteCarlo(),
    "puct": Puct(),
}
