"""Drives in a machine's configuration, and the volumes behind them."""
