"""The pages of the desk, and what their forms do: a module a page, each with the handlers of its routes.

Public: every module. A handler takes a visit and what the path says, and returns a response; it may raise the errors
of the family. Imports archive, gate, webarcfs.room, agent's acts and what they import, and desk's other folders but
server.

The pages that set an archive up: access, options, people, publications, registers.

Public: every module. As `pages/`, whose fields of forms they use. Imports what `pages/` imports, and pages.

Snapshots that are not released, shown to staff by the room's own replay, below `/s/<token>/`.

Public: `replay`. Imports archive, webarcfs.room, and desk's shared, look and pages.
"""
