"""What the language says an algorithm can teach is what its recipe asks a model for."""

from typing import Any, get_args

import pytest

from coloop.algorithms.recipes import recipe_of
from coloop.algorithms.recipes.protocol import Needs
from coloop.spec.algorithm import PORTS_OF, resolve_algorithm
from coloop.spec.heads import LEARNED_FROM, Reading


def asked(needs: Needs) -> set[str]:
    return {reading for reading in get_args(Reading) if getattr(needs, reading)}


@pytest.mark.parametrize("algorithm", PORTS_OF, ids=lambda one: one.__name__)
def test_a_recipe_asks_for_what_its_algorithm_teaches(algorithm: Any) -> None:
    found = set()
    for name in get_args(algorithm.model_fields["name"].annotation):
        settings = resolve_algorithm(algorithm(name=name), max_new_tokens=8)
        found |= {
            reading
            for reading in get_args(Reading)
            if asked(recipe_of(settings, reading).needs(settings)) == {reading}
        }

    assert found == LEARNED_FROM[algorithm]
