"""Decides whether every record was delivered exactly once, from broker logs, sink files and log lines alone.

Imports nothing of this project; a test enforces it. A folder that is checked holds

    bounds.json          what is expected: cluster/topic/partition → first offset and, if it ends, stop offset
    dumps/*.csv          what the brokers' logs held, before each fault that destroys records and at the end (`final`)
    sink/                see `sink`, or a folder of Spark's file sink
    history.jsonl        micro-batches as the driver logged and committed them, or else
    checkpoint/          Spark's own logs of them
    logs/*.log           what operator and drivers have said
"""
