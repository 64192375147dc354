"""How a node writes: prompts, rollouts, conversations with tools."""
