"""Ways of searching, by the name that `method` takes, in a file each."""

from typing import Final

from coloop.roles.searching.binary_search import BinarySearch
from coloop.roles.searching.method import Method
from coloop.roles.searching.monte_carlo import MonteCarlo

METHODS: Final[dict[str, Method]] = {"binary_search": BinarySearch(), "monte_carlo": MonteCarlo()}
