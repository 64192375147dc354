"""Sources that run in a sandbox, each without imports from coloop: judges of built-in rewards (a
function `judge` of one question, returning a dict), and the proof checker (`reward`)."""
