"""Runs many sources with rescales for hours and measures what grows.

Memory, threads, file descriptors, requests.

Everything is real but Spark: API server, broker and operator are processes of their own, and the
driver process runs the product's stream readers and hands their tasks to worker processes, in the
order of Spark's calls.
"""
