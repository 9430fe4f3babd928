//! Downloads and repositories, against a real server on the loopback and real folders.

mod bad_input;
mod bundle;
mod child;
mod crash;
mod download;
mod fuzz;
mod lifecycle;
mod rotation;
mod server;
mod site;
