"""FLIP-27 sources with FLIP-537's global split assignment, as a library without any I/O."""
