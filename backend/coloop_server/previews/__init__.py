"""Previews of rewards and rows before a run, computed in separate processes."""
