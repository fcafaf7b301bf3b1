"""What turns the C and Go sources into the two libraries of the wheel. Used by the build hook and by `tools/`."""
