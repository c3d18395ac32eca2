"""client."""

from webarcfs.client.client import CommitTag, MetaData, WebarchiveClient

__all__ = ["CommitTag", "MetaData", "WebarchiveClient"]
