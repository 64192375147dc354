"""What a policy may call while it writes: find the call in what it wrote, do it, word the answer.

    text ──calls──> tool, arguments ──session──> Answered ──observations──> what the policy reads

A tool is one for a whole run; a session is what it remembers of one text. Whatever the policy or
the tool does wrong is told to the policy. Knows columns and texts; nothing of lineage, tokens,
models or phases, and importing it loads neither torch nor transformers.
"""
