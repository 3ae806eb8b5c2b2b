"""`make chaos`: random fault schedules on real parts, and a checker that trusts none of our code.

The light engine (`light`) drives the real planner, task readers and local mode against real
brokers, without a JVM. `checker` decides from broker logs and sink files alone; it imports nothing
of this project.
"""
