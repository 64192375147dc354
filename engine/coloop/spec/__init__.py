"""The loop language: what a loop can say, read from YAML and written back."""
