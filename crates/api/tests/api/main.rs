//! The API as a client sees it, over the router and a store in memory.

#[cfg(test)]
mod backup;
#[cfg(test)]
mod client;
#[cfg(test)]
mod custom;
#[cfg(test)]
mod eviction;
#[cfg(test)]
mod health;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod numbers;
#[cfg(test)]
mod objects;
#[cfg(test)]
mod own;
#[cfg(test)]
mod ownership;
#[cfg(test)]
mod parts;
// Debian's etcd is a program for Linux.
#[cfg(test)]
#[cfg(not(windows))]
mod shared;
#[cfg(test)]
mod subresources;
#[cfg(test)]
mod versions;
#[cfg(test)]
mod watches;
