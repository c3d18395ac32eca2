"""The gateway: the API for persons, by tokens, who read all and add to the archive without a mount.

Public: `gateway_app` (the routes, and the process that serves them), `askers` (who asks, and what they may), `uploads`
(bodies as they come), `view_source` (the archive with its own additions of a moment ago).
"""
