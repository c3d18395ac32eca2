-- Limits all waits: another process wrote them by a clock that may have been set since.
UPDATE url SET not_before = :latest WHERE state = 'waiting' AND not_before > :latest;
