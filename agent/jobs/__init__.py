"""One job from start to report: opens, runs, publishes and ends crawls and imports.

Public: `crawljob.run`, `importjob.run`, `publishing` (the pipeline, its stages, and the end of a job). Each stage reads
documents from the one before it and yields them. Runs in the process of the job.
"""
