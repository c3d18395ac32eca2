"""What an archive is: its formats, its repositories, its database. Knows neither FUSE nor wget."""
