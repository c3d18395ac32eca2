"""One job from start to report: opens, runs, publishes and ends crawls and imports.

Public: `crawljob.run`, `importjob.run`, `ending`. Runs in the process of the job. Imports every folder below it but
upkeep.
"""
