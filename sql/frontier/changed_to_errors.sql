-- The error pages of a domain that took the place of what their ARC had.
SELECT id, arc FROM url WHERE domain = :domain AND status BETWEEN 400 AND 499 AND result = 'changed';
