module balanced-source.invalid/testbed/pause

go 1.26.0
