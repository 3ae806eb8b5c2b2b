"""Decides from broker logs, sink files and log lines whether each record was delivered once.

Schedules over files are decided by `lines`. Imports nothing of this project; a test enforces it.
A folder that is checked holds

    bounds.json          what is expected: cluster/topic/partition → first offset, and its stop
    dumps/*.csv          what the brokers' logs held, before each destructive fault and at the end
    sink/                see `sink`, or a folder of Spark's file sink
    history.jsonl        micro-batches as the driver logged and committed them, or else
    checkpoint/          Spark's own logs of them
    logs/*.log           what operator and drivers have said
"""
