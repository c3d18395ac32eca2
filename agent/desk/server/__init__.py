"""The table of routes, with the right that each needs, and the process that serves them.

Public: `app` (the routes, who may what, the answers, forms as they come, the process, and server-sent events).
"""
