"""Every write that the collection makes, combined with every fault that the simulator can make.

`python -m tests.faults` runs the whole table. `scenarios` are the tasks that make the writes,
`faults` are the faults, `world` reads the cluster afterwards, and `table` judges.
"""
