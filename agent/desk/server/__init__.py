"""The table of routes, with the right that each needs, and the process that serves them.

Public: `routing` (a route), `routes` (the table), `app` (who may what, and the answers), `bodies` (forms as they come),
`watching` (server-sent events), `serving` (the process). Imports every other folder of the desk, and webarcfs.room.
"""
