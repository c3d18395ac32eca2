"""A URL's line in crawl.log: Heritrix's twelve columns. Pure."""

from __future__ import annotations

from agent.frontier.rows import FrontierUrl
from agent.policy.fetchstatus import seed3_state
from agent.policy.vocabulary import Figure, LinkKind
from webarcfs.archive.model.metadata import parse_time, utc


def line(row: FrontierUrl, referrer: str) -> str:
    """Return the line of a URL; `-` stands for columns that do not apply."""
    stamp = utc(parse_time(row.captured)) if row.captured else None
    columns = (
        stamp.strftime("%Y-%m-%dT%H:%M:%S.000Z") if stamp else "-",
        f"{row.status:5}",
        f"{row.size if row.captured else '-':>10}",
        row.url,
        row.hops or "-",
        referrer or "-",
        row.mime or "-",
        f"#{row.batch:03}",
        stamp.strftime("%Y%m%d%H%M%S000") if stamp else "-",
        f"sha1:{row.digest}" if row.digest else "-",
        "-",
        ",".join(_annotations(row)),
    )
    return " ".join(columns)


def _annotations(row: FrontierUrl) -> list[str]:
    """Return seed 3's state, the reasons and the result, then the figures."""
    found = [f"{Figure.SEED3}{seed3_state(row.status, row.note, row.result)}", row.note, row.result]
    found.append(f"{Figure.TRIES}{row.tries}" if row.tries > 1 else "")
    found.append(f"{Figure.LINKS}{row.links}" if row.links >= 0 else "")
    found.append(f"{Figure.DEPTH}{row.depth}" if row.kind != LinkKind.ROBOTS else "")
    return ["_".join(each.split()) for each in found if each]
