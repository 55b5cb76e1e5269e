"""The basis of every call: the state of the cluster, tasks, locks, rights and the dispatcher."""
