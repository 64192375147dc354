"""Generation by a node: prompts, rollouts, conversations with tools."""
