"""The commands of `webarc-agent`, one module each; `COMMANDS` lists them. A command is imported when it is called.

Public: `COMMANDS`. Imports every other folder.
"""

from __future__ import annotations

from webarcfs.lazy_commands import Commands

COMMANDS = Commands(
    {
        "init": "agent.commands.init:init",
        "crawl": "agent.commands.crawl:crawl",
        "import": "agent.commands.import_:import_",
        "start": "agent.commands.start:start",
        "stop": "agent.commands.start:stop",
        "job": "agent.commands.control.job:job",
        "publication": "agent.commands.control.publication:publication",
        "status": "agent.commands.status:status",
        "report": "agent.commands.report:report",
        "record": "agent.commands.records.attachments:record",
        "register": "agent.commands.records.registers:register",
        "backup": "agent.commands.backup:backup",
        "restore": "agent.commands.backup:restore",
        "desk": "agent.commands.desk:desk",
        "withhold": "agent.commands.access:withhold",
        "people": "agent.commands.access:people",
        "recover": "agent.commands.upkeep:recover",
        "index": "agent.commands.index:index",
        "verify": "agent.commands.upkeep:verify",
        "maintain": "agent.commands.upkeep:maintain",
        "upgrade": "agent.commands.init:upgrade",
    }
)
