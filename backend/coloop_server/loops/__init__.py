"""Loops: saved texts with every revision they ever had."""
