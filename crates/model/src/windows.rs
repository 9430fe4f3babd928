//! Windows builds, their marketing names, and which container build runs on which host build.
