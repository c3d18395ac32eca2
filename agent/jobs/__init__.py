"""One job from start to report: opens, runs, publishes and ends crawls and imports.

Public: `crawljob.run`, `importjob.run`, `ending`. Runs in the process of the job. Imports every folder below it but
upkeep.

The stages of the pipeline, one module each; `agent/jobs/publishing.py` lists them in order.

Public: every module. A stage reads documents from the previous stage and yields them. A stage never imports another
stage. Imports pipeline, filters, frontier, capture (the paths of batches), and of webarcfs archive, content, warc.
"""
