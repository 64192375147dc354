"""Configurations of other frameworks as loops, and loops as configurations of other frameworks.

    text --bring--> settings --table of a framework--> values by path --draft--> loop

A framework is one file with one table: the name of each setting and its path here, or the reason
why it is not carried.
"""
