"""Bad input that ends in a clear error or is told and survived, and the tests that show it;
`test_node_table` finds each of them and holds the README of the roles to the list."""

from collections.abc import Mapping
from typing import Final

WRONG = "validate/test_rules.py::test_a_broken_rule_gets_exactly_its_finding"
BAD: Final[Mapping[str, tuple[str, ...]]] = {
    "a verifier whose output never parses": (
        "runs/test_judges_in_words.py::test_a_judge_that_never_says_a_verdict_is_told_and_ends_the_run",
        "roles/test_verifiers.py::test_a_group_without_an_answer_gets_nothing_and_a_person_is_told",
    ),
    "groups of one": (
        WRONG,
        "recipes/test_credit.py::test_a_group_of_one_gets_nothing_and_an_alert",
    ),
    "problems of a proposer that are all too hard or all too easy": (
        "runs/test_bad_input.py::test_a_proposer_of_problems_that_are_all_alike_is_named",
        "runs/test_bad_input.py::test_a_filter_that_keeps_nothing_ends_the_run_with_the_rule",
    ),
    "rewards that never arrive": (
        "runs/test_bad_rewards.py::test_a_reward_that_never_says_anything_ends_the_run_with_the_reason",
        "runs/test_remote_rewards.py::test_a_run_that_a_failure_ended_goes_on_bit_for_bit",
    ),
    "a buffer that never fills": (
        WRONG,
        "runs/test_bad_input.py::test_a_buffer_that_cannot_fill_ends_the_run",
        "runs/test_bad_input.py::test_a_buffer_that_cannot_fill_is_left_at_its_cap",
    ),
    "an input that nothing is connected to": (WRONG,),
    "two optimizers of one model": (WRONG,),
    "snapshots of each other in a cycle": (WRONG,),
    "a critic or reference with another tokenizer": (
        "runs/test_bad_scorers.py::test_a_scorer_of_another_tokenizer_is_named",
        "workers/test_worker.py::test_token_ids_of_another_tokenizer_are_refused",
    ),
    "a teacher with another tokenizer": (
        WRONG,
        "runs/test_distillation.py::"
        "test_a_teacher_of_another_tokenizer_ends_the_run_before_it_starts",
    ),
    "a reward model without a head": (
        "runs/test_scorers.py::test_a_frozen_scorer_without_a_head_is_no_scorer",
    ),
    "a head missing from a checkpoint": (
        "runs/test_earlier_runs.py::test_a_head_that_the_earlier_run_lacks_is_new_and_one_that_it_has_comes_along",
        "runs/test_scorers.py::test_a_head_of_other_classes_than_are_read_is_refused",
    ),
    "labels outside the classes": (
        "runs/test_bad_scorers.py::test_a_label_outside_of_the_classes_is_named",
        "runs/test_scorers.py::test_a_label_that_is_no_chance_ends_the_run_with_its_row",
    ),
    "a remote reward that is slow": (
        "services/test_service.py::test_a_reply_that_trickles_ends_at_the_timeout",
        "runs/test_remote_rewards.py::test_a_stop_is_obeyed_while_a_service_hangs",
    ),
    "a remote reward with invalid responses": (
        "services/test_service.py::test_nonsense_is_told_and_not_asked_again",
        "rewards/test_remote.py::test_what_is_no_score_is_told",
    ),
    "a remote reward that returns 500": (
        "services/test_service.py::test_a_service_that_stays_busy_is_given_up",
        "services/test_service.py::test_a_circuit_opens_after_three_and_closes_with_an_answer",
        "runs/test_remote_rewards.py::test_a_run_that_a_failure_ended_goes_on_bit_for_bit",
    ),
    "a remote reward that redirects": (
        "services/test_service.py::test_a_redirect_is_not_followed",
    ),
    "a judge by URL that answers prose": (
        "roles/test_chat_judges.py::test_prose_without_a_verdict_gets_on_no_match_and_is_counted",
        "runs/test_judges_by_url.py::test_prose_instead_of_verdicts_is_an_alert",
    ),
    "a judge by URL that refuses": (
        "roles/test_chat_judges.py::test_a_refusal_has_no_verdict_and_is_told",
    ),
    "a judge by URL whose answers are cut off": (
        "roles/test_chat_judges.py::test_a_cut_answer_is_read_as_far_as_it_goes_and_counted",
    ),
    "a judge by URL that is slow": (
        "services/test_chat.py::test_an_answer_that_is_too_slow_is_told",
    ),
    "a judge by URL that costs more than its limit": (
        "services/test_chat.py::test_above_its_cost_limit_nothing_is_asked_any_more",
        "runs/test_judges_by_url.py::test_a_cost_limit_ends_the_run_and_a_higher_one_goes_on",
    ),
    "a tool that hangs": (
        "tools/test_python.py::test_code_that_is_too_slow_loses_its_variables_and_is_told_so",
        "runs/test_tools.py::test_a_stop_is_obeyed_while_a_tool_works",
    ),
    "a tool that prints megabytes": (
        "tools/test_python.py::test_megabytes_are_kept_up_to_a_limit",
        "runs/test_bad_rewards.py::test_a_reward_that_prints_megabytes_is_heard_out",
    ),
    "a tool that dies": (
        "tools/test_python.py::test_a_process_that_ends_itself_is_told",
        "runs/test_tools.py::test_a_broken_tool_is_counted_and_ends_no_run",
    ),
    "a tool result that the chat template cannot render": (
        "tools/test_calls.py::test_a_template_that_cannot_hold_an_answer_is_a_failure",
        "roles/test_conversation.py::test_a_failure_is_read_plainly_where_the_template_cannot_hold_it",
    ),
    "an environment that never ends": (
        "runs/test_tools.py::test_an_environment_that_never_ends_is_cut_and_counted",
    ),
    "a search whose budget runs out before a leaf": (
        "roles/test_search.py::test_a_spent_budget_gives_what_is_known",
        "roles/test_search.py::test_time_that_is_up_is_told",
        "roles/test_trees.py::test_a_budget_that_is_spent_before_a_proof_is_told",
        "roles/test_trees.py::test_a_budget_that_is_spent_before_a_proof_is_told",
    ),
    "a search outcome that is not a probability": (
        "roles/test_search.py::test_an_outcome_that_is_no_chance_is_refused",
    ),
    "tactics that are all rejected": (
        "roles/test_trees.py::test_tactics_that_lead_nowhere_are_told",
    ),
    "rounds that never close": (WRONG,),
    "an empty folder of documents": (
        "data/test_sources.py::test_a_folder_without_documents_is_empty",
        "validate/test_files.py::test_a_folder_without_documents_is_empty",
    ),
    "documents without words": (
        "tools/test_search.py::test_documents_without_words_are_refused",
        "runs/test_tools.py::test_documents_without_words_end_the_run_before_it_begins",
    ),
    "NaN in weights": (
        "runs/test_bad_scorers.py::test_weights_that_are_not_numbers_are_named_before_anybody_learns",
        "sync/test_channels.py::test_weights_that_are_not_finite_are_told",
    ),
    "NaN in a score": (
        "roles/test_verifiers.py::test_a_score_that_is_no_number_ends_the_run_with_its_row",
        "runs/test_bad_rewards.py::test_a_reward_that_is_wrong_fails_the_run_and_names_itself",
    ),
    "NaN in a loss or gradient": (
        "training/test_single.py::test_a_loss_that_is_not_finite_names_the_place_and_leaves_the_weights",
        "training/test_single.py::test_a_gradient_that_is_not_finite_leaves_the_weights",
        "training/test_backends.py::test_a_stop_and_a_loss_that_is_not_finite_leave_all_ranks_as_they_were",
    ),
    "an evaluation without rows": (
        "runs/test_evaluations.py::test_what_could_not_be_measured_is_told_once",
    ),
    "NaN in a loop": (
        "spec/test_problems.py::test_numbers_that_are_not_finite_are_refused_in_plain_data",
    ),
}
"""By what is wrong."""

HEAD = "| invalid input | tested by |"


def written() -> str:
    """As the README has it."""
    lines = [HEAD, "|---|---|"]
    for what, tests in BAD.items():
        names = "<br>".join(f"`{test.replace('::', ' ')}`" for test in tests)
        lines.append(f"| {what} | {names} |")
    return "\n".join(lines)
