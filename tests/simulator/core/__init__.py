"""The state of the cluster, tasks, locks, rights and the dispatcher: what every call needs."""
