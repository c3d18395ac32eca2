"""One job from start to report: crawls and imports are opened, run, published domain by domain, ended.

Public: `crawljob.run`, `importjob.run`, `ending`. Runs in the process of the job. Imports every folder below it but
upkeep.
"""
