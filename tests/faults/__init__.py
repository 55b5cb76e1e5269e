"""Every write that the collection makes, met by every fault that the simulator can make.

`python -m tests.faults` runs the whole table. `scenarios` says how each write comes about, `faults`
what happens to it, `world` reads what is there afterwards, and `table` judges.
"""
