"""Which names the rows of a table can give, and whether it is clear what they mean."""

from coloop.spec.lineage import Names


def _names(lineage, node: str, port: str) -> Names:
    tables = lineage.names.at(node, port)
    assert len(tables) == 1
    return next(iter(tables.values()))


def test_the_nearest_value_counts(drawn) -> None:
    lineage, _ = drawn(
        "problems: dataset\nask: {kind: template, text: 'ask {{ prompt }}'}\nactor: actor",
        "problems.rows -> ask.rows\nask.rows -> actor.prompts",
    )

    names = _names(lineage, "actor", "rollouts")

    assert names.bare["completion"].distance == 0
    assert names.bare["answer"].distance == 1
    assert names.gives("ask.prompt")
    assert names.gives("problems.prompt")
    assert not names.gives("ask.answer")
    assert not names.gives("actor.answer")


def test_two_values_at_the_same_distance_are_ambiguous(drawn) -> None:
    lineage, _ = drawn(
        "sums: dataset\nleft: actor\nright: actor\nboth: template",
        """
        sums.rows -> left.prompts
        sums.rows -> right.prompts
        left.rollouts -> both.rows
        right.rollouts -> both.rows
        """,
    )

    names = _names(lineage, "both", "rows")

    assert names.is_ambiguous("completion")
    assert not names.is_ambiguous("answer")
    assert names.gives("left.completion")


def test_sides_of_a_pair_have_their_columns_each(drawn) -> None:
    lineage, _ = drawn(
        "problems: dataset\nactor: actor\nrivals: {kind: pairs, method: all}",
        "problems.rows -> actor.prompts\nactor.rollouts -> rivals.rollouts",
    )

    names = _names(lineage, "rivals", "pairs")

    assert names.is_ambiguous("completion")
    assert not names.is_ambiguous("prompt")
    assert not names.is_ambiguous("answer")
    assert names.gives("chosen")


def test_dropped_columns_are_gone_under_their_bare_name(drawn) -> None:
    lineage, _ = drawn(
        "problems: dataset\ncut: {kind: template, drop: [answer]}",
        "problems.rows -> cut.rows",
    )

    names = _names(lineage, "cut", "rows")

    assert not names.gives("answer")
    assert names.gives("problems.answer")


def test_a_buffer_gives_what_every_part_gives(drawn) -> None:
    lineage, _ = drawn(
        """
        seeds: dataset
        ask: template
        writer: actor
        parsed: {kind: template, parse: {question: "(x)"}, text: "{{ question }}", drop: [answer]}
        pool: buffer
        """,
        """
        seeds.rows -> pool.seed
        pool.rows -> ask.rows
        ask.rows -> writer.prompts
        writer.rollouts -> parsed.rows
        parsed.rows -> pool.rows
        """,
    )

    names = _names(lineage, "pool", "rows")

    assert names.gives("prompt")
    assert names.gives("pool.prompt")
    assert not names.gives("question")
    assert not names.gives("answer")


def test_scores_come_along_under_their_nodes_name(drawn) -> None:
    lineage, _ = drawn(
        "problems: dataset\nactor: actor\nexact: reward\nkept: filter\nask: template",
        """
        problems.rows -> actor.prompts
        actor.rollouts -> exact.rollouts
        actor.rollouts -> kept.rollouts
        exact.scores -> kept.scores
        kept.rollouts -> ask.rows
        """,
    )

    assert "exact" in _names(lineage, "ask", "rows").scores
    assert "exact" not in _names(lineage, "actor", "rollouts").scores


def test_what_later_rounds_bring_may_be_named(drawn) -> None:
    lineage, _ = drawn(
        """
        problems: dataset
        ask: template
        actor: actor
        record: {kind: template, columns: {so_far: "{{ completion }}"}}
        """,
        """
        problems.rows -> ask.rows
        ask.rows -> actor.prompts
        actor.rollouts -> record.rows
        {from: record.rows, to: ask.rows, rounds: 2}
        """,
    )

    names = _names(lineage, "ask", "rows")

    assert names.gives("record.so_far")
    assert names.gives("actor.completion")


def test_code_and_files_leave_names_open(drawn) -> None:
    lineage, _ = drawn(
        """
        rows: {kind: dataset, source: {type: file, path: rows.jsonl}}
        free: {kind: template, code: "def write(**columns):\\n    return dict(columns)\\n"}
        fixed: {kind: template, code: "def write(**columns):\\n    return {'hint': 'x'}\\n"}
        """,
        "rows.rows -> free.rows\nrows.rows -> fixed.rows",
    )

    assert _names(lineage, "rows", "rows").gives("anything")
    assert _names(lineage, "free", "rows").is_open
    assert "hint" in _names(lineage, "fixed", "rows").bare


def test_columns_that_somebody_looked_up_close_a_source(drawn) -> None:
    lineage, _ = drawn("rows: {kind: dataset, source: {type: file, path: rows.csv}}", "")
    spec = lineage.spec

    closed = type(lineage)(spec, {"rows": frozenset({"prompt"})})

    names = _names(closed, "rows", "rows")
    assert (set(names.bare), names.exact) == ({"prompt"}, {"rows": {"prompt"}})
