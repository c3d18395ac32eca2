-- The snapshots in the order in which they are published.
SELECT crawl, domain, number, begin, time, is_last, outcome FROM cut ORDER BY begin;
