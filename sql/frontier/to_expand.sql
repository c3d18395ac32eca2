-- Pages whose links were added from too deep: a shorter way to them was found later (/Cr-1.1/).
SELECT * FROM url WHERE state = 'done' AND expanded > depth;
