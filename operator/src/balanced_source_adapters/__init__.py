"""Adapters that operator and driver both need.

Documents in a folder, a coordinator loop, a folder per connector.

Client libraries are imported in the connectors' folders and in the two entry packages' own
adapters, nowhere else.
"""
