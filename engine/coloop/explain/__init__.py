"""Help for findings and alerts, algorithms and presets, for the command line and the service."""
