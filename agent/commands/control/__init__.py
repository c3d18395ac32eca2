"""Commands by which a person controls what the agent does: `job`, `publication`.

Public: one command a module, listed in `agent.commands`. Imports every folder but upkeep and importing.
"""
