-- When the last answer of a domain came.
SELECT max(captured) FROM url WHERE domain = :domain;
