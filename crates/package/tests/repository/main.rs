//! Downloads and repositories, against a real server on the loopback and real folders.

mod download;
mod server;
