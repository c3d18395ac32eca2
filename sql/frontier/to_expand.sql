-- Pages whose links were added with too large a depth: a shorter path to them was found later (/Cr-1.1/).
SELECT url.*, coalesce(named.named, '') AS named FROM url LEFT JOIN named ON named.id = url.id
 WHERE state = 'done' AND expanded > depth;
