"""One job from start to report: opens, runs, publishes and ends crawls and imports.

Public: `crawljob.run`, `importjob.run`, `publishing` (the pipeline, and the end of a job), `stages` (what it lists in
order: each reads documents from the one before it and yields them). Runs in the process of the job.
"""
