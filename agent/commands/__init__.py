"""The commands of `webarc-agent`, one module each; `COMMANDS` lists them. A command is imported when it is called.

Public: `COMMANDS`. Imports every other folder.

Commands by which a person controls what the agent does: `job`, `publication`.

Public: one command a module, listed in `agent.commands`. Imports every folder but upkeep and importing.

The commands about records: shown, edited, decided about, taken from step to step; the registers.

Public: `steps.record`, `registers.register`. Imports commands (what is shared), steps, catalogue, service.
"""

from __future__ import annotations

from webarcfs.commands.lazy_commands import Commands

COMMANDS = Commands(
    {
        "init": "agent.commands.archive:init",
        "crawl": "agent.commands.crawl:crawl",
        "import": "agent.commands.import_:import_",
        "start": "agent.commands.service:start",
        "stop": "agent.commands.service:stop",
        "job": "agent.commands.job:job",
        "publication": "agent.commands.publication:publication",
        "status": "agent.commands.service:status",
        "report": "agent.commands.report:report",
        "record": "agent.commands.record:record",
        "register": "agent.commands.registers:register",
        "backup": "agent.commands.archive:backup",
        "restore": "agent.commands.archive:restore",
        "desk": "agent.commands.desk:desk",
        "withhold": "agent.commands.access:withhold",
        "people": "agent.commands.access:people",
        "recover": "agent.commands.archive:recover",
        "index": "agent.commands.archive:index",
        "verify": "agent.commands.archive:verify",
        "maintain": "agent.commands.archive:maintain",
        "upgrade": "agent.commands.archive:upgrade",
    }
)
