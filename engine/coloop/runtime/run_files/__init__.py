"""What a run writes while it goes: events, log, and the lock that says who writes."""
