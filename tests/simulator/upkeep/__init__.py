"""The cluster, its nodes, pools and listings."""
