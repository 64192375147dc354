"""Knowledge: questions about a made-up world that is written down in documents.

    friend of home of Bako:      Remi            (two hops)

There is one world, so questions and documents of a loop speak of the same people.
"""

import random
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from coloop.data.answers import last_line
from coloop.data.tasks.base import (
    Part,
    Problem,
    Stratum,
    Task,
    decode,
    each_of,
    stable_hash,
)
from coloop.spec.tasks import KnowledgeTask

RELATIONS: Final = ("friend", "teacher", "rival", "cousin")
CONSONANTS: Final = "bdfgklmnprstvz"
VOWELS: Final = "aeiou"
PEOPLE: Final = 64
"""How many people the world has."""


@lru_cache(maxsize=4)
def world(entities: int) -> tuple[tuple[str, ...], Mapping[tuple[str, str], str]]:
    """Names, and who is what to whom."""
    rng = random.Random(stable_hash(f"world {entities}"))
    names: dict[str, None] = {}
    while len(names) < entities:
        names[_name(rng, syllables=3)] = None
    people = tuple(names)
    facts = {
        (relation, name): rng.choice([other for other in people if other != name])
        for relation in RELATIONS
        for name in people
    }
    return people, facts


def _name(rng: random.Random, *, syllables: int) -> str:
    parts = (rng.choice(CONSONANTS) + rng.choice(VOWELS) for _ in range(syllables))
    return "".join(parts).capitalize()


def _strata(parameters: KnowledgeTask) -> Sequence[Stratum]:
    return [_stratum(hops) for hops in each_of(parameters.hops)]


def _stratum(hops: int) -> Stratum:
    names, facts = world(PEOPLE)
    bases = [len(RELATIONS)] * hops + [PEOPLE]

    def problem(index: int) -> Problem:
        *chain, person = decode(index, bases)
        answer = names[person]
        for place in chain:
            answer = facts[RELATIONS[place], answer]
        question = " of ".join([RELATIONS[place] for place in reversed(chain)] + [names[person]])
        columns = {"prompt": f"{question}:", "answer": answer, "target": answer, "hops": hops}
        return Problem(key=question, columns=columns)

    return Stratum(size=len(RELATIONS) ** hops * PEOPLE, problem=problem)


def _documents(parameters: KnowledgeTask) -> Sequence[Stratum]:
    """One document about each of the people, and `noise` times as many about nobody in it."""
    names, facts = world(PEOPLE)

    def problem(index: int) -> Problem:
        if index < PEOPLE:
            name = names[index]
            others = [facts[relation, name] for relation in RELATIONS]
        else:
            rng = random.Random(stable_hash(f"noise {index}"))
            name, *others = (_name(rng, syllables=4) for _ in range(len(RELATIONS) + 1))
        told = [
            f"The {relation} of {name} is {other}."
            for relation, other in zip(RELATIONS, others, strict=True)
        ]
        return Problem(key=name, columns={"title": name, "text": " ".join(told)})

    return [Stratum(size=PEOPLE * (1 + parameters.noise), problem=problem)]


def check_knowledge(columns: Mapping[str, Any], completion: str) -> float | None:
    """1 where the completion ends with the right name."""
    gold = columns.get("answer")
    if not isinstance(gold, str):
        return None
    return float(last_line(completion).rstrip(".").casefold() == gold.casefold())


KNOWLEDGE: Final = Task(
    name="knowledge",
    help="Questions of one or more hops about a made-up world, and the documents that describe it.",
    parameters=KnowledgeTask,
    main=Part(
        help="A question whose answer is a name.",
        columns=("prompt", "answer", "target", "hops"),
        strata=_strata,
    ),
    parts={
        "documents": Part(
            help="A document about each person; the same for both splits.",
            columns=("title", "text"),
            strata=_documents,
            is_split=False,
        )
    },
    check=check_knowledge,
)
