"""A connector that the tree does not know, from its wheel."""
