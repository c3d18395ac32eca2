"""All routes of the desk, with the right that each needs. The tests try each without a login, a right, a token."""

from __future__ import annotations

from typing import Final

from agent.desk.office import access, feed, options, people, publications, registers
from agent.desk.pages import attachments, comparing, jobs, logs, new, orders, snapshot, snapshots, today
from agent.desk.preview import replay
from agent.desk.server.routing import Route, route
from webarcfs.archive.catalogue.workflow import Right

_RECORD = r"/snapshot/(?P<record>[^/]+)"
_EXAMPLE = "/snapshot/20260101T000000-p"


def _of_snapshot(name: str, word: str, post: object, right: Right) -> Route:
    """Return the route of a form on the page of a snapshot."""
    return route(name, f"{_RECORD}/{word}", f"{_EXAMPLE}/{word}", post=post, acts=right, again=snapshot.show)


#: The first that fits answers.
ROUTES: Final[tuple[Route, ...]] = (
    route("today", r"/", "/", get=today.today),
    route("snapshots as a table", r"/snapshots\.csv", "/snapshots.csv", get=snapshots.as_csv),
    route("snapshots", r"/snapshots", "/snapshots", get=snapshots.listed),
    route("ticks", r"/snapshots/ticks", "/snapshots/ticks", post=snapshots.keep_ticks, again=snapshots.again,
          action=snapshots.PATH),
    route("release the ticked", r"/snapshots/release", "/snapshots/release", post=snapshots.release,
          acts=Right.RELEASE, again=snapshots.again, action=snapshots.PATH),
    route("choose several", r"/snapshots/several", "/snapshots/several", post=snapshots.to_several,
          acts=Right.DESCRIBE, again=snapshots.again, action=snapshots.PATH),
    route("change several", r"/snapshots/edit", "/snapshots/edit", get=snapshots.several, post=snapshots.save_several,
          looks=Right.DESCRIBE, acts=Right.DESCRIBE, again=snapshots.several),
    route("new snapshot", r"/new", "/new", get=new.show, post=new.start, looks=Right.CAPTURE, acts=Right.CAPTURE,
          again=new.show),
    route("log", rf"{_RECORD}/log/(?P<log>.+)", f"{_EXAMPLE}/log/crawl.log.gz", get=logs.show),
    route("preview", rf"{_RECORD}/preview", f"{_EXAMPLE}/preview", get=replay.begin),
    _of_snapshot("description", "describe", snapshot.save, Right.DESCRIBE),
    route("attach", f"{_RECORD}/attach", f"{_EXAMPLE}/attach", post=attachments.attach, acts=Right.DESCRIBE,
          again=snapshot.show, takes_file=True),
    _of_snapshot("detach", "detach", attachments.detach, Right.DESCRIBE),
    route("attachment", rf"{_RECORD}/attachment/(?P<name>[^/]+)", f"{_EXAMPLE}/attachment/contract.pdf",
          get=attachments.download),
    _of_snapshot("release", "release", snapshot.release, Right.RELEASE),
    _of_snapshot("reject", "reject", snapshot.reject, Right.REVIEW),
    _of_snapshot("reopen", "reopen", snapshot.reopen, Right.REVIEW),
    _of_snapshot("withdraw", "withdraw", snapshot.withdraw, Right.WITHDRAW),
    _of_snapshot("discard", "discard", snapshot.discard, Right.WITHDRAW),
    _of_snapshot("restore", "restore", snapshot.restore, Right.WITHDRAW),
    _of_snapshot("cancel", "cancel", snapshot.cancel, Right.CAPTURE),
    _of_snapshot("look", "look", snapshot.look, Right.REVIEW),
    _of_snapshot("measure", "measure", snapshot.measure, Right.PROCESS),
    route("step", f"{_RECORD}/step", f"{_EXAMPLE}/step", post=snapshot.step, again=snapshot.show),
    route("snapshot as a file", rf"{_RECORD}\.(?P<kind>xml|json|dc)", f"{_EXAMPLE}.xml", get=snapshot.exported),
    route("snapshot", _RECORD, _EXAMPLE, get=snapshot.show),
    route("previewed page", r"/s/(?P<token>[^/]+)/(?:web|notice)/.*", "/s/x/web/20260101000000/http://e.org/",
          get=replay.shown),
    route("compare", r"/compare/(?P<pair>[^/]+)", "/compare/a..b", get=comparing.compare),
    route("compare with any", r"/compare", "/compare", get=comparing.choose),
    route("running", r"/running", "/running", get=jobs.running),
    route("order", r"/job/(?P<job>[^/]+)/order", "/job/20260101T000000-p/order", post=orders.give, acts=Right.CAPTURE,
          again=jobs.running),
    route("publications", r"/publications", "/publications", get=publications.listed),
    route("new publication", r"/publications/\+new", "/publications/+new", get=publications.new, post=publications.save,
          looks=Right.PUBLICATIONS, acts=Right.PUBLICATIONS, again=publications.new),
    route("try a new publication", r"/publications/\+try", "/publications/+try", post=publications.try_,
          acts=Right.PUBLICATIONS, again=publications.new, action="/publications/+new"),
    route("trial", r"/publications-trial/(?P<mark>[^/]+)", "/publications-trial/x", get=publications.trial,
          looks=Right.PUBLICATIONS),
    route("publication", r"/publications/(?P<name>[^/+]+)", "/publications/p", get=publications.show,
          post=publications.save, acts=Right.PUBLICATIONS, again=publications.show),
    route("try a publication", r"/publications/(?P<name>[^/+]+)/try", "/publications/p/try", post=publications.try_,
          acts=Right.PUBLICATIONS, again=publications.show, suffix="/try"),
    route("retire", r"/publications/(?P<name>[^/+]+)/retire", "/publications/p/retire", post=publications.retire,
          acts=Right.PUBLICATIONS, again=publications.show),
    route("registers", r"/registers", "/registers", get=registers.show),
    route("keep in a register", r"/registers/save", "/registers/save", post=registers.save, acts=Right.PUBLICATIONS,
          again=registers.show),
    route("report", r"/report/(?P<job>[^/]+)", "/report/20260101T000000-p", get=jobs.report),
    route("access", r"/access", "/access", get=access.show),
    route("withhold", r"/access/withhold", "/access/withhold", post=access.withhold, acts=Right.WITHDRAW,
          again=access.show),
    route("lift", r"/access/lift", "/access/lift", post=access.lift, acts=Right.WITHDRAW, again=access.show),
    route("options", r"/options", "/options", get=options.show, post=options.save, acts=Right.OPTIONS,
          again=options.show),
    route("people", r"/people", "/people", get=people.show, looks=Right.PEOPLE),
    route("save person", r"/people/save", "/people/save", post=people.save, acts=Right.PEOPLE, again=people.show),
    route("remove person", r"/people/remove", "/people/remove", post=people.remove, acts=Right.PEOPLE,
          again=people.show),
    route("password", r"/password", "/password", get=people.password, post=people.set_password, again=people.password),
    route("feed", r"/feed/(?P<feed>[^/]+)\.atom", "/feed/x.atom", get=feed.read),
    route("address of the feed", r"/feed", "/feed", get=feed.show, post=feed.change, again=feed.show),
    route("language", r"/language", "/language", post=people.language, again=today.today),
    route("logout", r"/logout", "/logout", post=people.logout, again=today.today),
)  # fmt: skip
