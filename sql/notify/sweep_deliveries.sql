-- Forgets what was given up long ago.
DELETE FROM delivery WHERE state = 'given-up' AND due < :before;
