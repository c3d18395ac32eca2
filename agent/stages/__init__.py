"""The stages of the pipeline, a module each; `agent/jobs/publishing.py` lists them in order.

Public: every module. A stage draws documents from the one before it and yields them on. A stage never imports a
stage. Imports pipeline, filters, frontier, capture (where batches lie), and of webarcfs archive, content, warc.
"""
