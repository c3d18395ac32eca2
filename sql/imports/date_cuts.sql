-- The time of a snapshot is that of its first capture with something for the archive.
UPDATE cut
   SET time = coalesce((SELECT min(time) FROM capture WHERE capture.crawl = cut.crawl AND capture.domain = cut.domain
                           AND capture.cut = cut.number AND content NOT IN ('', 'gone')),
                       (SELECT time FROM capture WHERE capture.id = cut.begin));
