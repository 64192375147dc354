"""By form of a node, tests of its contract: what comes in at its ports, what goes out, and what of
it is a clear error. `test_node_table` finds each of them."""

from collections.abc import Mapping
from typing import Final

from tests.engine.roles.node_forms import Form

ENGINES = "rollout/test_contract.py::test_answers_come_in_the_order_of_the_requests"
PUSHED = "rollout/test_contract.py::test_weights_that_do_not_fit_are_told_by_name"

CONTRACTS: Final[Mapping[Form, tuple[str, ...]]] = {
    ("dataset", "task"): (
        "data/test_sources.py::test_a_task_source_gives_the_tasks_rows",
        "data/test_sources.py::test_a_task_that_has_fewer_rows_than_asked_names_the_split",
        "roles/test_dataset.py::test_a_pass_goes_over_every_row_and_on_into_the_next",
    ),
    ("dataset", "file"): (
        "data/test_sources.py::test_jsonl_rows_come_in_order_and_blank_lines_do_not_count",
        "data/test_sources.py::test_a_malformed_line_is_named_with_what_stands_there",
        "data/test_sources.py::test_a_missing_file_is_named_with_the_nearest_one",
    ),
    ("dataset", "hub"): (
        "data/test_sources.py::test_a_hub_source_is_read_under_its_name_and_split",
        "data/test_sources.py::test_a_hub_source_that_cannot_be_reached_ends_in_one_message",
    ),
    ("dataset", "inline"): (
        "data/test_sources.py::test_inline_rows_are_given_as_written",
        "roles/test_dataset.py::test_entries_of_a_list_become_children_of_their_row",
    ),
    ("actor", "torch"): (ENGINES, PUSHED),
    ("actor", "vllm"): (
        "rollout/test_vllm.py::test_it_draws_the_tokens_that_the_torch_engine_draws",
        "rollout/test_vllm.py::test_a_missing_vllm_is_told_with_what_brings_it",
    ),
    ("actor", "remote"): (
        "rollout/test_remote_engine.py::test_it_writes_what_the_engine_behind_the_service_writes",
        "rollout/test_remote_engine.py::test_an_answer_that_is_none_is_told_and_leaves_nothing_behind",
    ),
    ("critic", "own model"): (
        "training/test_heads.py::test_every_backend_learns_values_and_scores_as_float64_does",
        "training/test_heads.py::test_the_variance_explained_is_that_of_the_whole_order",
        "training/test_heads.py::test_what_a_model_has_no_head_for_is_refused_by_name",
    ),
    ("critic", "head beside words"): (
        "training/test_heads.py::test_one_pass_says_words_and_values_of_a_model_that_has_both_heads",
    ),
    ("reference", "log-probs"): (
        "roles/test_reference.py::test_rows_of_different_temperatures_are_scored_each_at_its_own",
    ),
    ("reward", "builtin"): (
        "rewards/test_builtin.py::test_the_registry_has_exactly_the_rewards_of_the_loop_language",
        "roles/test_reward.py::test_scores_come_with_the_rows_and_stand_in_them",
        "roles/test_reward.py::test_by_default_a_row_that_fails_stops",
    ),
    ("reward", "python"): (
        "roles/test_reward.py::test_the_users_code_sees_columns_by_name",
        "roles/test_reward.py::test_none_means_does_not_apply",
        "roles/test_reward.py::test_a_list_of_another_length_than_the_steps_stops_and_is_told",
    ),
    ("reward", "python, per gathered row"): (
        "roles/test_verifiers.py::test_python_scores_each_row_that_was_gathered",
        "roles/test_verifiers.py::test_a_list_of_another_length_than_was_gathered_ends_the_run",
    ),
    ("reward", "model"): (
        "roles/test_verifiers.py::test_a_reward_model_reads_what_its_template_makes",
        "roles/test_verifiers.py::test_a_reward_model_reads_each_side_of_a_pair_alone",
        "roles/test_verifiers.py::test_of_classes_the_score_is_the_chance_of_the_first",
    ),
    ("reward", "remote"): (
        "rewards/test_remote.py::test_rows_go_in_batches_and_scores_come_in_their_order",
        "rewards/test_remote.py::test_what_is_no_score_is_told",
    ),
    ("reward", "chat"): (
        "roles/test_chat_judges.py::test_a_verdict_of_a_chat_model_is_a_reward",
        "roles/test_chat_judges.py::test_a_failed_request_follows_the_nodes_policy",
    ),
    ("verifier", "rule"): (
        "roles/test_verifiers.py::test_a_rule_grades_the_whole_completion",
        "roles/test_verifiers.py::test_a_rule_without_a_task_says_what_is_missing",
    ),
    ("verifier", "rule, by step"): (
        "roles/test_verifiers.py::test_a_rule_grades_each_step",
        "roles/test_verifiers.py::test_steps_of_a_drawn_text_stand_at_its_tokens",
    ),
    ("verifier", "generative"): (
        "roles/test_generative.py::test_a_verdict_is_a_child_of_what_it_judges",
        "roles/test_generative.py::test_a_text_in_which_nothing_is_found_has_no_score",
    ),
    ("verifier", "generative, by URL"): (
        "roles/test_chat_judges.py::test_its_rollouts_are_texts_without_tokens",
        "roles/test_chat_judges.py::test_a_rubric_in_one_answer_is_a_weighted_sum",
        "roles/test_chat_judges.py::test_a_group_is_judged_in_one_request",
        "roles/test_chat_judges.py::test_a_failed_request_follows_the_nodes_policy",
    ),
    ("verifier", "generative, label probabilities"): (
        "roles/test_generative.py::test_without_a_rollout_the_chance_of_the_first_label_scores_the_judged_rows",
    ),
    ("verifier", "implicit_prm"): (
        "roles/test_verifiers.py::test_an_implicit_reward_is_the_log_ratio_of_each_token_but_the_last",
        "roles/test_verifiers.py::test_a_running_scale_is_the_mean_over_batches_and_outlives_a_run",
    ),
    ("verifier", "discriminative, outcome"): (
        "roles/test_verifiers.py::test_a_classifier_says_one_number_of_a_text",
        "roles/test_verifiers.py::test_a_score_that_is_no_number_ends_the_run_with_its_row",
    ),
    ("verifier", "discriminative, process"): (
        "roles/test_verifiers.py::test_a_classifier_is_read_where_steps_end",
    ),
    ("verifier", "vote, majority"): (
        "roles/test_verifiers.py::test_the_majority_of_a_prompts_texts_is_right",
        "roles/test_verifiers.py::test_a_group_without_an_answer_gets_nothing_and_a_person_is_told",
    ),
    ("verifier", "vote, weighted"): (
        "roles/test_verifiers.py::test_scores_that_come_in_weigh_the_votes",
    ),
    ("verifier", "formal"): (
        "roles/test_verifiers.py::test_a_formal_checker_grades_what_it_can_read",
        "roles/test_verifiers.py::test_a_formal_checker_agrees_with_that_of_the_task",
    ),
    ("template", "text"): (
        "roles/test_template.py::test_a_text_becomes_the_prompt_of_the_same_row",
    ),
    ("template", "messages"): (
        "roles/test_template.py::test_a_chat_becomes_the_prompt_of_the_same_row",
    ),
    ("template", "parse"): (
        "roles/test_template.py::test_what_is_not_found_is_absent_and_dropped_columns_end",
    ),
    ("template", "each"): ("roles/test_template.py::test_each_makes_a_child_of_every_element",),
    ("template", "code"): (
        "roles/test_template.py::test_code_writes_columns_and_cuts_rows",
        "roles/test_template.py::test_code_that_fails_names_node_and_row",
    ),
    ("filter", "keep"): (
        "roles/test_filter.py::test_a_row_stays_where_every_rule_keeps_it",
        "roles/test_filter.py::test_a_filter_that_keeps_nothing_says_which_rule_cut",
    ),
    ("filter", "per_group, best of n"): (
        "roles/test_filter.py::test_at_most_so_many_rows_of_a_group_stay",
    ),
    ("filter", "fill"): (
        "roles/test_refill.py::test_passes_go_on_until_there_are_enough_groups",
        "roles/test_refill.py::test_after_the_last_round_it_goes_on_with_what_it_has",
    ),
    ("filter", "resample"): (
        "roles/test_filter.py::test_drawn_rows_keep_their_ids_and_say_how_often",
    ),
    ("filter", "spare"): ("roles/test_filter.py::test_rows_at_spare_fill_up_what_was_cut",),
    ("pairs", "best_worst"): ("roles/test_pairs.py::test_best_against_worst_of_a_group",),
    ("pairs", "all"): ("roles/test_pairs.py::test_every_two_of_a_group",),
    ("pairs", "margin"): ("roles/test_pairs.py::test_every_two_that_differ_enough",),
    ("pairs", "direct"): ("roles/test_pairs.py::test_two_inputs_are_joined_by_lineage",),
    ("pairs", "relabel"): (
        "roles/test_pairs.py::test_a_preference_below_the_middle_swaps_the_sides",
    ),
    ("buffer", "newest"): (
        "roles/test_buffer.py::test_newest_and_oldest",
        "roles/test_buffer.py::test_an_empty_buffer_gives_nothing_and_the_learner_says_so",
    ),
    ("buffer", "oldest"): ("roles/test_buffer.py::test_newest_and_oldest",),
    ("buffer", "uniform"): (
        "roles/test_buffer.py::test_uniform_draws_differ_by_step_and_not_by_run",
    ),
    ("buffer", "weighted"): (
        "roles/test_buffer.py::test_weighted_draws_follow_the_column",
        "roles/test_buffer.py::test_a_weight_that_is_no_number_is_named",
    ),
    ("tool", "python"): (
        "tools/test_python.py::test_variables_stay_from_call_to_call_and_the_last_value_is_shown",
        "tools/test_python.py::test_code_that_is_too_slow_loses_its_variables_and_is_told_so",
    ),
    ("tool", "calculator"): (
        "tools/test_calculator.py::test_an_expression_has_its_value",
        "tools/test_calculator.py::test_what_is_no_expression_or_too_large_is_told",
    ),
    ("tool", "search"): (
        "tools/test_search.py::test_documents_are_found_by_bm25",
        "tools/test_search.py::test_documents_without_words_are_refused",
    ),
    ("tool", "environment"): (
        "tools/test_environment.py::test_texts_have_instances_of_their_own",
        "tools/test_environment.py::test_the_proof_environment_is_a_tool",
        "tools/test_environment.py::test_what_a_step_does_wrong_is_told",
    ),
    ("tool", "model"): (
        "roles/test_policy_tool.py::test_what_was_asked_are_children_of_the_text_that_asked",
        "roles/test_policy_tool.py::test_a_policy_that_nobody_asked_has_written_nothing",
    ),
    ("search", "monte_carlo"): (
        "roles/test_search.py::test_monte_carlo_labels_each_step_by_its_completions",
        "roles/test_search.py::test_a_spent_budget_gives_what_is_known",
    ),
    ("search", "binary_search"): (
        "roles/test_search.py::test_binary_search_finds_the_error_that_a_scan_finds",
        "roles/test_search.py::test_a_spent_budget_gives_what_is_known",
    ),
    ("search", "puct"): (
        "roles/test_trees.py::test_puct_by_the_numbers",
        "roles/test_trees.py::test_a_tree_of_texts_follows_the_chances_of_its_steps",
        "roles/test_trees.py::test_with_a_value_steps_are_drawn_one_by_one",
    ),
    ("search", "and_or"): (
        "roles/test_trees.py::test_returns_come_up_by_the_numbers",
        "roles/test_trees.py::test_a_tree_proves_what_a_slow_reference_proves",
        "roles/test_trees.py::test_a_budget_that_is_spent_before_a_proof_is_told",
    ),
    ("environment", "python"): (
        "roles/test_environment.py::test_policies_act_in_turns_and_each_row_belongs_to_its_writer",
        "roles/test_environment.py::test_what_an_environment_does_wrong_is_named",
    ),
    ("environment", "entry"): (
        "tools/test_bridges.py::test_a_gymnasium_class_is_an_environment",
        "roles/test_environment.py::test_a_class_that_is_not_there_is_named",
    ),
    ("environment", "textarena"): (
        "tools/test_textarena.py::test_a_game_of_two_players_is_played_to_its_end",
        "tools/test_textarena.py::test_a_game_that_is_not_there_is_named",
    ),
    ("evaluate", "other rows"): (
        "roles/test_evaluate.py::test_the_probes_rows_stand_under_the_name_of_those_they_replace",
        "roles/test_evaluate.py::test_a_probe_moves_no_cursor_and_draws_the_same_again",
    ),
    ("evaluate", "the step's tables"): (
        "roles/test_evaluate.py::test_the_steps_own_tables_are_read_without_running_anything",
    ),
    ("evaluate", "teaching ports"): (
        "roles/test_evaluate.py::test_losses_of_a_teaching_port_are_measured_without_learning",
        "roles/test_evaluate.py::test_a_reference_scores_the_probes_rows_too",
    ),
    ("rounds", "one"): ("roles/test_rounds.py::test_one_goes_on_through_the_first_sample",),
    ("rounds", "all"): ("roles/test_rounds.py::test_all_goes_on_as_a_tree",),
    ("rounds", "lines"): (
        "roles/test_rounds.py::test_lines_write_one_text_each_from_round_two_on",
    ),
}
