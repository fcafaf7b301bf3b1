"""dlferry against its peers: what `make bench` runs. PLAN.md says which questions it answers."""
