//! Per-unit logs: written with rotation, read with follow and since.
