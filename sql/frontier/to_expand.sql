-- Pages whose links were added with too large a depth: a shorter path to them was found later (/Cr-1.1/).
SELECT * FROM url WHERE state = 'done' AND expanded > depth;
