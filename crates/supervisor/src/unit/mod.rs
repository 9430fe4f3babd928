//! Unit files as values: names, parsing, dependencies, enabling.
