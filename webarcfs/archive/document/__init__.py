"""data.xml, the document that describes an ARC: written in one form, read with suspicion, extended by data nodes.

Public: `data_xml`, `data_nodes`, `schemas`, `validation_log`. The only folder of archive/ that knows lxml. Keeps
nothing but bounded memories of small results, shared by all threads. Imports model, system, config.
"""
