"""Tells people when something goes wrong: by mail, by requests to URLs, by a program of theirs.

Public: `notifier` (looks at an archive, queues what is new, delivers), `conditions` (what needs a person), `channels`
(the ways, their faults, a test). Nothing here is called by a crawl or in the loop of the agent: both only write their
results, and a process of its own reads them.
"""
