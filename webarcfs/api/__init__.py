"""The archive over HTTP for programs, below `/api/v1`: one table of routes for all servers, and what answers them.

Public: `routes` (the table, and how a server binds it), `api_source` (what the handlers ask), `problems` (errors as
problem details), `api_request` (names in paths and queries), `answers`, `changes` (news as they come). A server brings
its listener, who asks, and a source; rows that it adds have the same shape.
"""
