"""What judges of built-in rewards run in the limited process: each a file of its own that needs
nothing of ours, with a function `judge` of one question that answers a dict."""
