"""The compiled form of the modules that a mount runs most: which they are, building it, putting it in front.

Public: `loader` (used by `mount.webarcfs` alone), `python -m webarcfs.native.build`. Optional: without it the sources
run. Imports the standard library and archive/model; mypyc is asked for in a process of its own.
"""
