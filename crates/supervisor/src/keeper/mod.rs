//! The process that holds one service's processes while the daemon comes and goes.
