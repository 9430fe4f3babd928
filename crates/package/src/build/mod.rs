//! Building: sources are fetched, the recipe runs where it can reach nothing else, and the result becomes an archive.
