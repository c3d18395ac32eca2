-- The snapshots that were published after a number of the archive's counter, in the order of the feed.
SELECT sequence, commitTag
  FROM snapshot
 WHERE sequence > :sequence
 ORDER BY sequence;
