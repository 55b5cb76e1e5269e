"""Networks of the nodes, and the firewall."""
