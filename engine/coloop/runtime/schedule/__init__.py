"""Which stage starts when: the scheduler, its lanes, rounds and refills."""
