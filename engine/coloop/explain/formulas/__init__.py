"""What an algorithm computes with its own settings, formula by formula.

Written from the resolved settings that the recipes read: a term that is off does not appear, and
each number is the one that runs.
"""
