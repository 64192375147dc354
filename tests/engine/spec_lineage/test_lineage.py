"""Which rows descend from which, read off small graphs."""

from collections.abc import Callable

from coloop.spec.lineage import Level, Relation

Terms = Callable[[frozenset[Level]], list[str]]


def _edge(lineage, label):
    return next(edge for edge in lineage.spec.edges if edge.label == label)


def test_writers_make_children_and_scorers_keep_rows(drawn, terms: Terms) -> None:
    lineage, found = drawn(
        """
        problems: dataset
        actor: actor
        judge: judge
        exact: reward
        agrees: {kind: reward, source: {type: builtin, name: agreement, columns: [judge, exact]}}
        """,
        """
        problems.rows -> actor.prompts
        actor.rollouts -> judge.rollouts
        actor.rollouts -> exact.rollouts
        judge.scores -> agrees.scores
        exact.scores -> agrees.scores
        """,
    )

    assert found == []
    assert terms(lineage.levels("actor", "rollouts")) == ["actor(problems)"]
    assert terms(lineage.levels("exact", "scores")) == ["actor(problems)"]
    assert terms(lineage.levels("judge", "scores")) == ["judge(actor(problems))"]
    assert terms(lineage.levels("agrees", "scores")) == ["judge(actor(problems))"]


def test_a_verifier_that_writes_nothing_scores_the_rows_judged(drawn, terms: Terms) -> None:
    lineage, _ = drawn(
        "problems: dataset\nactor: actor\nscorer: scorer",
        "problems.rows -> actor.prompts\nactor.rollouts -> scorer.rollouts",
    )

    assert terms(lineage.levels("scorer", "scores")) == ["actor(problems)"]
    assert lineage.levels("scorer", "rollouts") == frozenset()


def test_nodes_that_join_the_same_parents_work_on_the_same_rows(drawn, terms: Terms) -> None:
    lineage, _ = drawn(
        "sums: dataset\nleft: actor\nright: actor\none: template\ntwo: template",
        """
        sums.rows -> left.prompts
        sums.rows -> right.prompts
        left.rollouts -> one.rows
        right.rollouts -> one.rows
        left.rollouts -> two.rows
        right.rollouts -> two.rows
        """,
    )

    assert terms(lineage.input_levels("one")) == ["(left(sums), right(sums))"]
    assert lineage.input_levels("one") == lineage.input_levels("two")


def test_concat_keeps_levels_apart(drawn, terms: Terms) -> None:
    lineage, found = drawn(
        """
        sums: dataset
        words: dataset
        actor: actor
        rival: actor
        exact: {kind: reward, join: concat, source: {type: builtin, name: exact_match}}
        """,
        """
        sums.rows -> actor.prompts
        words.rows -> actor.prompts
        words.rows -> rival.prompts
        actor.rollouts -> exact.rollouts
        rival.rollouts -> exact.rollouts
        exact.scores -> actor.rewards
        """,
    )

    assert found == []
    own = ["actor(sums)", "actor(words)"]
    assert terms(lineage.levels("actor", "rollouts")) == own
    assert terms(lineage.levels("exact", "scores")) == [*own, "rival(words)"]
    attachment = lineage.attachment(_edge(lineage, "exact.scores -> actor.rewards"))
    assert attachment.relation is Relation.SAME
    assert not attachment.rises


def test_scores_rise_fall_and_cross(drawn) -> None:
    lineage, found = drawn(
        """
        problems: dataset
        actor: actor
        rival: actor
        judge: judge
        whole: reward
        """,
        """
        problems.rows -> actor.prompts
        problems.rows -> rival.prompts
        actor.rollouts -> judge.rollouts
        problems.rows -> whole.rows
        {from: judge.scores, to: actor.rewards, aggregate: mean}
        {from: judge.scores, to: rival.rewards, aggregate: max}
        whole.scores -> actor.rewards
        """,
    )

    assert found == []
    up = lineage.attachment(_edge(lineage, "judge.scores -> actor.rewards"))
    side = lineage.attachment(_edge(lineage, "judge.scores -> rival.rewards"))
    down = lineage.attachment(_edge(lineage, "whole.scores -> actor.rewards"))
    assert (up.relation, up.via, up.rises) == (Relation.UP, None, True)
    assert (side.relation, side.via, side.rises) == (Relation.SIDE, "problems", True)
    assert (down.relation, down.via, down.rises) == (Relation.DOWN, None, False)


def test_a_missing_aggregate_is_found_once(drawn) -> None:
    _, found = drawn(
        "problems: dataset\nactor: actor\njudge: judge",
        """
        problems.rows -> actor.prompts
        actor.rollouts -> judge.rollouts
        judge.scores -> actor.rewards
        """,
    )

    assert [one.code for one in found] == ["lineage.missing_aggregate"]
    assert found[0].field == "edges.2"


def test_off_policy_rows_need_no_aggregate(drawn) -> None:
    _, found = drawn(
        """
        problems: dataset
        actor: pupil
        again: template
        refiner: actor
        exact: reward
        """,
        """
        problems.rows -> actor.prompts
        actor.rollouts -> again.rows
        again.rows -> refiner.prompts
        refiner.rollouts -> exact.rollouts
        exact.scores -> actor.rewards
        """,
    )

    assert found == []


def test_pairs_descend_from_their_chosen_and_their_rejected_side(drawn, terms: Terms) -> None:
    lineage, found = drawn(
        """
        gold: dataset
        actor: actor
        rivals: {kind: pairs, method: all}
        own: {kind: pairs, method: direct}
        judge: judge
        again: {kind: pairs, method: relabel}
        """,
        """
        gold.rows -> actor.prompts
        actor.rollouts -> rivals.rollouts
        gold.rows -> own.chosen
        actor.rollouts -> own.rejected
        rivals.pairs -> judge.comparisons
        rivals.pairs -> again.pairs
        {from: judge.scores, to: again.preference, aggregate: mean}
        """,
    )

    assert found == []
    assert terms(lineage.levels("rivals", "pairs")) == ["rivals(actor(gold), actor(gold))"]
    assert terms(lineage.levels("own", "pairs")) == ["own(gold, actor(gold))"]
    assert terms(lineage.levels("again", "pairs")) == ["again(actor(gold), actor(gold))"]


def test_what_a_buffer_gives_has_no_parents_but_keeps_its_writer(drawn, terms: Terms) -> None:
    lineage, found = drawn(
        "problems: dataset\nactor: actor\nexact: reward\nreplay: buffer",
        """
        problems.rows -> actor.prompts
        actor.rollouts -> exact.rollouts
        actor.rollouts -> replay.rollouts
        exact.scores -> replay.scores
        replay.scores -> actor.rewards
        """,
    )

    assert found == []
    assert terms(lineage.levels("replay", "rollouts")) == ["replay"]
    assert terms(lineage.own_levels("actor")) == ["actor(problems)", "replay"]
    edge = _edge(lineage, "replay.scores -> actor.rewards")
    assert lineage.attachment(edge).relation is Relation.SAME


def test_spare_rows_make_a_filter_give_two_levels(drawn, terms: Terms) -> None:
    lineage, _ = drawn(
        "problems: dataset\nask: template\nkept: {kind: filter, up_to: 8}\npool: buffer",
        """
        problems.rows -> ask.rows
        ask.rows -> kept.rows
        kept.rows -> pool.rows
        pool.rows -> kept.spare
        """,
    )

    assert terms(lineage.levels("kept", "rows")) == ["pool", "problems"]


def test_a_policy_that_a_tool_calls_writes_children_of_its_callers_rows(
    drawn, terms: Terms
) -> None:
    lineage, found = drawn(
        """
        problems: dataset
        solver: actor
        reader: actor
        condense: {kind: tool, type: model, template: {text: "{{ value }}"}}
        web: {kind: tool, type: calculator}
        exact: reward
        """,
        """
        problems.rows -> solver.prompts
        web.tool -> condense.tools
        reader.policy -> condense.policy
        condense.tool -> solver.tools
        solver.rollouts -> exact.rollouts
        {from: exact.scores, to: reader.rewards}
        """,
    )

    assert found == []
    assert terms(lineage.levels("reader", "rollouts")) == ["reader(solver(problems))"]
    assert terms(lineage.levels("condense", "rollouts")) == ["reader(solver(problems))"]


def test_a_search_labels_texts_that_are_there_and_grows_others(drawn, terms: Terms) -> None:
    search = "{kind: search, method: monte_carlo, budget: {tokens: 8}}"
    lineage, _ = drawn(
        f"problems: dataset\nactor: actor\nlabels: {search}\ngrown: {search}",
        """
        problems.rows -> actor.prompts
        actor.rollouts -> labels.rows
        problems.rows -> grown.rows
        actor.policy -> labels.policy
        actor.policy -> grown.policy
        """,
    )

    assert terms(lineage.levels("labels", "rollouts")) == ["actor(problems)"]
    assert terms(lineage.levels("grown", "rollouts")) == ["grown(problems)"]
    assert terms(lineage.own_levels("actor")) == ["actor(problems)", "grown(problems)"]


def test_gathered_rows_and_scores_of_each_member(drawn, terms: Terms) -> None:
    lineage, found = drawn(
        """
        items: dataset
        actor: actor
        vote: {kind: reward, join: {gather: items}, source: &match {type: builtin, name: task}}
        each: {kind: reward, join: {gather: items}, per: row, source: *match}
        """,
        """
        items.rows -> actor.prompts
        actor.rollouts -> vote.rollouts
        actor.rollouts -> each.rollouts
        """,
    )

    assert found == []
    assert terms(lineage.levels("vote", "scores")) == ["items(actor(items))"]
    assert terms(lineage.levels("each", "scores")) == ["actor(items)"]


def test_entries_and_elements_are_children_of_their_row(drawn, terms: Terms) -> None:
    lineage, _ = drawn(
        """
        books: {kind: dataset, source: {type: inline, rows: [{pages: [a, b]}]}, unfold: pages}
        words: {kind: template, parse: {word: {regex: "(x)", all: true}}, each: word}
        """,
        "books.rows -> words.rows",
    )

    assert terms(lineage.levels("books", "rows")) == ["books(books)"]
    assert terms(lineage.levels("words", "rows")) == ["words(books(books))"]


def test_rounds_do_not_deepen_a_level_and_make_a_region(drawn, terms: Terms) -> None:
    lineage, found = drawn(
        "problems: dataset\nask: template\nactor: actor\nanswer: reward",
        """
        problems.rows -> ask.rows
        ask.rows -> actor.prompts
        {from: actor.rollouts, to: ask.rows, rounds: 3}
        actor.rollouts -> answer.rollouts
        """,
    )

    assert found == []
    assert terms(lineage.levels("actor", "rollouts")) == ["actor(problems)"]
    later = lineage.later_join("ask")
    assert later is not None
    assert terms(later.levels) == ["actor(problems)"]
    assert [(sorted(r.nodes), r.rounds) for r in lineage.regions] == [(["actor", "ask"], 3)]
    region = lineage.region_of("actor")
    assert region is not None
    assert lineage.region_of("answer") is None


def test_regions_that_cross_are_one(drawn) -> None:
    lineage, _ = drawn(
        "problems: dataset\nask_a: template\na: actor\nask_b: template\nb: actor",
        """
        problems.rows -> ask_a.rows
        problems.rows -> ask_b.rows
        ask_a.rows -> a.prompts
        ask_b.rows -> b.prompts
        {from: a.rollouts, to: ask_b.rows, rounds: 2}
        {from: b.rollouts, to: ask_a.rows, rounds: 2}
        """,
    )

    assert [sorted(region.nodes) for region in lineage.regions] == [["a", "ask_a", "ask_b", "b"]]


def test_rows_without_kin_cannot_be_aligned(drawn) -> None:
    _, found = drawn(
        "one: dataset\ntwo: dataset\nboth: template",
        "one.rows -> both.rows\ntwo.rows -> both.rows",
    )

    assert [one.code for one in found] == ["lineage.no_common_ancestor"]
    assert (found[0].node, found[0].field) == ("both", "join")


def test_a_probe_brings_scores_to_what_it_grades(drawn) -> None:
    lineage, found = drawn(
        "problems: dataset\nactor: actor\njudge: judge\ntruth: reward\nprobe: evaluate",
        """
        problems.rows -> actor.prompts
        actor.rollouts -> judge.rollouts
        actor.rollouts -> truth.rollouts
        {from: judge.scores, to: probe.scores, aggregate: mean}
        truth.scores -> probe.labels
        """,
    )

    assert found == []
    edge = _edge(lineage, "judge.scores -> probe.scores")
    assert lineage.attachment(edge).relation is Relation.UP


def test_a_circle_and_an_unknown_node_break_nothing(drawn) -> None:
    lineage, found = drawn(
        "a: template\nb: template",
        "a.rows -> b.rows\nb.rows -> a.rows\nnobody.rows -> a.rows\na.nothing -> b.rows",
    )

    assert found == []
    assert lineage.levels("a", "rows") == frozenset()
    assert lineage.walk.stuck == {"a", "b"}


def test_a_long_chain_is_walked_without_recursion(drawn, terms: Terms) -> None:
    names = [f"n{index}" for index in range(1200)]
    nodes = "\n".join(["problems: dataset", *(f"{name}: template" for name in names)])
    links = zip(["problems", *names], names, strict=False)
    edges = "\n".join(f"{a}.rows -> {b}.rows" for a, b in links)

    lineage, _ = drawn(nodes, edges)

    assert terms(lineage.levels(names[-1], "rows")) == ["problems"]
