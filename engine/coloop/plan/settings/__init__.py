"""Decides the settings that a loop leaves open, by memory arithmetic over architectures and
hardware presets.

`Resolved` is the only place where `null` becomes a value; compiler, estimate and run read it. Needs
no torch, and opens files only below a given `root`, besides the system's description of the CPU.
Works on drafts, where unknown parts are left out.
"""
