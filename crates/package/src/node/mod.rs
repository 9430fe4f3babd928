//! Packages on a node: the store of unpacked packages, generations, and the switch between them.
