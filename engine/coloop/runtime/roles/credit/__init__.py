"""From scores to what learners are given."""
