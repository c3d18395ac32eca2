"""What researchers take away: pages, texts, links and counts of an archive as tables, and the graph of its hosts."""
