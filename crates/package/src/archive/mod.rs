//! Package archives: written byte for byte the same from the same files, and unpacked only after each byte was checked.
