"""`make walks`: random walks over a source with several hosts, in virtual time on fakes.

A walk is a list of actions: of the user, of drivers that fail, of the operator and its documents.
Then everything is healed, and the walk must come to rest as the user asks for it. `worlds` says
which actions a walk has and what is promised, `rules` names the promises, `verdict` checks them,
and `shrinker` leaves actions out of a walk that breaks a rule.
"""
