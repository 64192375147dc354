"""What fits where: memory arithmetic over architecture facts and hardware presets, and the settings
that follow from it where a loop leaves them open.

`Resolved` is the one place where `null` becomes a value. The compiler, the estimate and the run
read what it decided. Needs no torch; no file is opened but under a `root` that the caller gives,
and those in which the system describes the processor. Works on half-drawn loops: what is not known
is left out.
"""
