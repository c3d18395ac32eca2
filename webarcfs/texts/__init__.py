"""The text of a version of a document: what people read of it, as the full-text index has it.

Public: `extraction` (texts from bodies, in a process with limits), `version_text` (the text of a version, with that
which a browser showed). Bodies may be hostile: what kills an extractor is a fault of its document, and no more. Nothing
here writes to an archive.
"""
