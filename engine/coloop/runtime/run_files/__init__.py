"""Files that a run writes: events, log, and the lock of its folder."""
