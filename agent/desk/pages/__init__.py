"""The pages of the desk, and what their forms do: a module a page, each with the handlers of its routes.

Public: every module. A handler takes a visit and what the path says, and returns a response; it may raise the errors of
the family. `preview` shows staff what is not released, by the room's own replay, below `/s/<token>/`.
"""
