"""Building blocks: those that ship with coloop, and those that a user saved."""
