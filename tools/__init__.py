"""What the Makefile's targets do. Start at `dev.py`; what the targets share is in `project.py`."""
