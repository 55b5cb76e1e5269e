"""How closely the simulator agrees with a real Proxmox VE."""
