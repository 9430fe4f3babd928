//! Runs the supervisor and looks at it as its users do: through the binary, the services' logs and
//! the processes there are. Invariant: every test has a machine of its own, on Linux and on Windows.

mod bad_input;
mod crash;
mod enablement;
#[cfg(test)]
mod harness;
mod kinds;
mod lifecycle;
mod listing;
#[cfg(test)]
mod packages;
#[cfg(test)]
mod processes;
mod relations;
mod restart;
mod surroundings;
mod timers;
