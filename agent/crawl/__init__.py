"""A crawl while it runs: its job's folder, its frontier, the rules that decide what is fetched, and wget.

Public: every module. `loop.capture` is the first stage; `frontier` has every URL of a job (SQLite, statements in
`sql/frontier/`); `job_folder` and `job_orders` have what is on the disk of a job, which the agent and `status` read.
`scope` and `vocabulary` are pure. Each wget is a process. A second process parses the results (`resultreader`), another
one shows pages in a browser (`browser`), with a thread for each host. Everything else runs in the job's thread.
"""
