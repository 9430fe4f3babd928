//! The controllers at work on an API server in the same process.
#![expect(clippy::unwrap_used, reason = "what tests share panics as tests do")]

mod accounts;
mod autoscaling;
mod certificates;
mod cluster;
mod daemonsets;
mod definitions;
mod deployments;
mod endpoints;
mod garbage;
mod images;
mod jobs;
mod leader;
mod namespaces;
mod node;
mod nodes;
mod pods;
mod quota;
mod roles;
mod statefulsets;
mod volumes;
