"""Trying a reward before training."""
