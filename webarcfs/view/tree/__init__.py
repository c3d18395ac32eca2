"""The nodes of the mount: a class for each kind of folder and file, the root, and the view over all of them.

Public: `view` (which state is shown; its thread follows publications), `root` (the mount's shape). Imports archive/,
view/ and view/state.
"""
