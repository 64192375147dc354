"""Suites of evaluations by other packages, on an exported model and in processes of their own."""
