//! Executes what the engine decides, and survives being killed.
