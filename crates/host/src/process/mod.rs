//! Processes that cannot be lost: groups and jobs, graceful stop, adoption.
