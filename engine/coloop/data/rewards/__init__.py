"""Rewards: the built-in ones, the user's Python in a sandbox, and services over HTTP.

Works on plain columns and scores, without lineage, models or devices. Importing it loads neither
torch nor transformers.
"""
