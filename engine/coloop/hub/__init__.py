"""The Hugging Face Hub: what a repository holds, downloads that can be cancelled and continued,
rows of a dataset before its download, and pushing checkpoints. Nothing happens unless asked for.

`huggingface_hub` is imported where it is called, so that looking at folders needs none of it.
"""
