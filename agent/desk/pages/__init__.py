"""The pages of the desk, and what their forms do: a module a page, each with the handlers of its routes.

Public: every module. A handler takes a visit and what the path says, and returns a response; it may raise the errors
of the family. Imports archive, gate, webarcfs.room, agent's acts and what they import, and desk's other folders but
server.
"""
