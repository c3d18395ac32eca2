-- The snapshots published after a value of the archive's counter, in the order of the feed.
SELECT sequence, commitTag
  FROM snapshot
 WHERE sequence > :sequence
 ORDER BY sequence;
