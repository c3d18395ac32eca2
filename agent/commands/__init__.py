"""The commands of `webarc-agent`, one module each; `COMMANDS` lists them. A command is imported when it is called.

Public: `COMMANDS`.
"""

from __future__ import annotations

from webarcfs.commands.lazy_commands import Commands

COMMANDS = Commands(
    {
        "init": "agent.commands.archive:init",
        "archives": "agent.commands.archives:archives",
        "crawl": "agent.commands.crawl:crawl",
        "save": "agent.commands.save:save",
        "import": "agent.commands.import_:import_",
        "start": "agent.commands.service:start",
        "stop": "agent.commands.service:stop",
        "service": "agent.commands.units:service",
        "job": "agent.commands.job:job",
        "publication": "agent.commands.publication:publication",
        "collection": "agent.commands.collection:collection",
        "status": "agent.commands.service:status",
        "metrics": "agent.commands.metrics:metrics",
        "watch": "agent.commands.notify:watch",
        "notify": "agent.commands.notify:notify",
        "report": "agent.commands.report:report",
        "record": "agent.commands.record:record",
        "crawls": "agent.commands.record:crawls",
        "register": "agent.commands.registers:register",
        "backup": "agent.commands.archive:backup",
        "restore": "agent.commands.archive:restore",
        "desk": "agent.commands.desk:desk",
        "gateway": "agent.commands.gateway:gateway",
        "withhold": "agent.commands.access:withhold",
        "people": "agent.commands.access:people",
        "recover": "agent.commands.archive:recover",
        "index": "agent.commands.archive:index",
        "verify": "agent.commands.archive:verify",
        "maintain": "agent.commands.archive:maintain",
        "upgrade": "agent.commands.archive:upgrade",
    }
)
