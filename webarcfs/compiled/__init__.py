"""The compiled form of the modules that a mount runs most: their list, building it, preferring it to the sources.

Public: `loader` (used by `mount.webarcfs` alone), `python -m webarcfs.compiled.build`. Optional: without it the sources
run. It needs the standard library; mypyc runs in a process of its own.
"""
