"""What the Makefile's targets do. Start at `dev.py`."""
