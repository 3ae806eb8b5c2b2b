"""Random input of every kind that strangers can hand to the product: `python -m fuzz`.

An input ends in a result or in a sentence: an error of the project, printable, that says more than
a word. Everything else is a finding. Each batch has a seed of its own, which is printed and can be
given again.
"""
