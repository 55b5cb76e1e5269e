"""Migration of guests to another cluster: both sides, and the tunnel between them."""
