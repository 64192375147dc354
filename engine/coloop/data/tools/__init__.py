"""Tools that a policy may call while it generates.

    text ──call_in──> tool, arguments ──session──> Answered ──worded──> what the policy reads

There is one tool for a run, and one session of it for each text. Errors of the policy and of the
tool are reported to the policy. Works on columns and texts; importing it loads neither torch nor
transformers.
"""
