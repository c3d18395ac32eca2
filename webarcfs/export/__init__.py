"""What leaves an archive: its snapshots in the field's formats, from which they can be rebuilt.

Public: `selection` (what is exported, and for whom), `export_result` (what came of it), and a module for each format,
with `export(selection, out, progress, stop) -> Summary`. `out` is a scratch path beside the one that the user named, or
what an interrupted export of the same selection left there: a format resumes it, or starts again. Whoever calls it
makes `out` durable and gives it its name. `stop()` is asked between documents; then a format raises Interrupted.
Nothing here writes to an archive.

`static_site` makes a folder that a browser reads without any server: the newest snapshot of each domain, its references
made relative. Nothing in it leads to the live web: links out lead to a notice, and scripts do not run, since a page
could go elsewhere by them, whatever its policy forbids.
"""
