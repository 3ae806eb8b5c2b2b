"""Mutation testing: break the code at random places, and see whether a unit test notices.

One process collects the unit tests once. Each mutant lives in a fork of it: the code object of one function is
exchanged, then only the tests that call that function run, the most specific first, until one fails. No file is
changed and nothing is imported anew, so a mutant takes about a second.

Public mutation tools rewrite files and start the test runner for each mutant, which takes several seconds each, and
none of them samples by part of the code base.
"""
