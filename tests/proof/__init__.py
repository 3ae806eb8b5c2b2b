"""`make proof`: the protocol's rules, explored on the real code.

The real coordinator, enumerator, assigner, documents and reader host are driven through every
interleaving of what can happen to them within a budget of disturbances; see `model` for the world
around them, `explorer` for the search, `rules` for what must hold, `mutants` for the bugs that the
search must find, and `docs/protocol.md` for the results.
"""
