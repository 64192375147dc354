"""Phases in time: which one is on, and the values that hold in it."""
