//! Whole hosts for tests: Linux hosts as network namespaces, Windows hosts as Wine prefixes in such
//! namespaces. Whatever a test made is gone when it ends, however it ends.
