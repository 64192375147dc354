"""Whether the server is there, and what it can do."""
