"""The command line: thin commands over the packages below, each importing what it needs when it
runs.
"""
