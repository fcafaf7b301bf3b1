"""Real array libraries, each with dlferry in a process of its own: what crosses, what is copied, what is refused and by whom.

`cases.py` says what is tried, `adapters.py` how each library makes and takes it, `expect.py` what must come out, `child.py` tries one library,
and `tools/interop.py` runs them all and writes docs/reference/interop.md.
"""
