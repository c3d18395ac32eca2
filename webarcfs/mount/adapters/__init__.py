"""The adapters between libfuse and the view: what they share, and the portable one, on fusepy (libfuse 2).

Public: every module. An adapter translates requests and answers, and decides nothing. It calls `live` once, registers
as the view's listener, counts each request, and answers errors by `requests`. `fusepy_adapter.serve` turns paths into
nodes; the kernel caches nothing for it. `libfuse3/` has the default adapter.
"""
