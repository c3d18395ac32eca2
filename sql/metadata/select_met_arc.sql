-- The number of an ARC in the table met: documents of both schemes share a path.
SELECT min(id) FROM document WHERE path = :path;
