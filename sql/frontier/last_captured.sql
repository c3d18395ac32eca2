-- The time of a domain's last response.
SELECT max(captured) FROM url WHERE domain = :domain;
