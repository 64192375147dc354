"""Checks proofs in a small Horn logic: `a, a>b, ab>c |- c` is proved by `b c`.

Each atom must follow by one rule from what is known, and the last one must be the goal. A word like
`ab>c` applies a rule backwards to the goal; then its premises that are not known must be proved one
by one. The proof is the last line, or all lines together.
"""


def reward(prompts: list[str], completions: list[str], **columns: object) -> list[float | None]:
    """1 for a valid proof, 0 for an invalid one, None if the prompt is not a theorem."""
    del columns
    return [grade(prompt, text) for prompt, text in zip(prompts, completions, strict=True)]


def grade(prompt: str, text: str) -> float | None:
    left, turnstile, goal = prompt.strip().rstrip(":").rstrip().partition("|-")
    goal, is_negated = goal.strip(), left.startswith("not ")
    parts = [part.strip() for part in left.removeprefix("not ").split(",")]
    if not turnstile or not goal or not all(parts):
        return None
    known = {part for part in parts if ">" not in part}
    rules = [part.split(">") for part in parts if ">" in part]
    if any(len(rule) != 2 for rule in rules):
        return None
    lines = [line for line in text.splitlines() if line.strip()]
    atoms = lines[-1].split() if lines else []
    if is_negated:
        return float(atoms == ["none"] and not follows(known, rules, goal))
    pairs = [(by, to) for by, to in rules]
    return float(any(shows(words, known, pairs, goal) for words in (atoms, text.split())))


def shows(words: list[str], known: set[str], rules: list[tuple[str, str]], goal: str) -> bool:
    if not any(">" in word for word in words):
        return derives(words, known, rules) and words[-1] == goal
    left = [(known, goal)]  # what remains to be proved, the next one last
    for word in words:
        if not left:
            return False
        facts, wanted = left.pop()
        by, is_rule, to = word.partition(">")
        if is_rule:
            if (by, to) not in rules or to != wanted:
                return False
            left += [(facts, atom) for atom in reversed(by) if atom not in facts]
        elif not derives([word], facts, rules):
            return False
        elif word != wanted:
            left.append((facts | {word}, wanted))
    return not left


def derives(atoms: list[str], known: set[str], rules: list[tuple[str, str]]) -> bool:
    """Whether there are atoms, and each follows from the known ones and those before it."""
    reached = set(known)
    for atom in atoms:
        if not any(to == atom and set(by) <= reached for by, to in rules):
            return False
        reached.add(atom)
    return bool(atoms)


def follows(known: set[str], rules: list[list[str]], goal: str) -> bool:
    reached = set(known)
    while True:
        more = {to for by, to in rules if set(by) <= reached} - reached
        if not more:
            return goal in reached
        reached |= more
