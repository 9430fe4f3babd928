//! Decides: events in, effects out. Pure.
