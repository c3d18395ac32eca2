-- No URL waits longer than this: what another process wrote was by a clock that may have been set since.
UPDATE url SET not_before = :latest WHERE state = 'waiting' AND not_before > :latest;
