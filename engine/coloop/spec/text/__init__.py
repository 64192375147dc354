"""The text of a loop: YAML read with the place of every value, edited in place, written anew.

    reader ──> data + places ──> (spec/io.py: documents, sections)
    patch ──> sharing, opening, edits over stretches of the text ──> the same text but for a change
    emit ──> text in the hand of the examples

Knows plain data and places; what a field means is the business of the sections.
"""
