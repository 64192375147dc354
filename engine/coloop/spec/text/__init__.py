"""The text of a loop: YAML read with the place of every value, edited in place, written anew."""
