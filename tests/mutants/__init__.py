"""Mutation testing: break the code at random places, and see whether a unit test notices.

One process collects the unit tests once and notes which lines each test executes. Each mutant lives
in a fork of that process: the code object of one function is exchanged, then only the tests that
execute the changed line run, the fastest first, until one fails. No file is changed and nothing is
imported again, so most mutants take about a second.

A kill counts only if the same test passes in another fork, in which the function was compiled again
without any change.

Public mutation tools rewrite files and start the test runner for each mutant, which takes several
seconds each, and none of them samples by part of the code base.
"""
