"""data.xml, the document that describes an ARC: written in one form, read with strict bounds, extended by data nodes.

Public: `data_xml`, `data_nodes`, `schemas`. Its only state are bounded caches of small results, shared by all threads.
"""
