"""The tasks `knowledge` and `read_debate`: questions about made-up facts, in documents or in a
passage that only the debaters see.

    friend of home of Bako:      Remi            (two hops)
    passage: k=4 q=7 z=2     question: q?     mine: 7     theirs: 3     mine_is_right: 1

All questions and documents are about the same people.
"""

import random
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from coloop.data.answers import last_line
from coloop.data.tasks.base import (
    Part,
    Problem,
    Stratum,
    Task,
    answer_checker,
    decode,
    question,
    stable_hash,
    strata_over,
)
from coloop.spec.tasks import KnowledgeTask, ReadDebateTask

RELATIONS: Final = ("friend", "teacher", "rival", "cousin")
CONSONANTS: Final = "bdfgklmnprstvz"
VOWELS: Final = "aeiou"
PEOPLE: Final = 64


@lru_cache(maxsize=4)
def world(entities: int) -> tuple[tuple[str, ...], Mapping[tuple[str, str], str]]:
    """The names of the people, and by (relation, name) the name of the related person."""
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


def _questions(hops: int) -> Stratum:
    names, facts = world(PEOPLE)
    bases = [len(RELATIONS)] * hops + [PEOPLE]

    def problem(index: int) -> Problem:
        *chain, person = decode(index, bases)
        answer = names[person]
        for relation in chain:
            answer = facts[RELATIONS[relation], answer]
        asked = " of ".join([*(RELATIONS[number] for number in reversed(chain)), names[person]])
        return question(asked, f"{asked}:", answer, hops=hops)

    return Stratum(size=len(RELATIONS) ** hops * PEOPLE, problem=problem)


def _documents(parameters: KnowledgeTask) -> Sequence[Stratum]:
    """One document per person, and `noise` times as many about unrelated people."""
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


def _ends_with_name(completion: str, gold: str) -> bool:
    return last_line(completion).rstrip(".").casefold() == gold.casefold()


KNOWLEDGE: Final = Task(
    name="knowledge",
    parameters=KnowledgeTask,
    main=Part(strata=strata_over("hops", _questions)),
    parts={"documents": Part(strata=_documents, is_split=False)},
    check=answer_checker(agrees=_ends_with_name),
)

LETTERS: Final = "bcdfghjklmnpqrstvwxz"
SEEDS: Final = 1 << 40


def _debates(facts: int) -> Stratum:
    def problem(index: int) -> Problem:
        rng = random.Random(index)
        keys = rng.sample(LETTERS, facts)
        values = [rng.randrange(10) for _ in keys]
        asked = rng.randrange(facts)
        wrong = rng.choice([digit for digit in range(10) if digit != values[asked]])
        mine_is_right = rng.randrange(2)
        sides = (values[asked], wrong) if mine_is_right else (wrong, values[asked])
        facts_told = [f"{key}={value}" for key, value in zip(keys, values, strict=True)]
        return Problem(
            key=" ".join(sorted(facts_told)),
            columns={
                "prompt": f"{keys[asked]}?",
                "passage": " ".join(facts_told),
                "question": f"{keys[asked]}?",
                "mine": str(sides[0]),
                "theirs": str(sides[1]),
                "mine_is_right": mine_is_right,
                "answer": str(values[asked]),
            },
        )

    return Stratum(size=SEEDS, problem=problem)


READ_DEBATE: Final = Task(
    name="read_debate",
    parameters=ReadDebateTask,
    main=Part(strata=strata_over("facts", _debates)),
    check=answer_checker(),
)
