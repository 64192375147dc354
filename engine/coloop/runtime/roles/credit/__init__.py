"""From scores to the sequences that learners get."""
