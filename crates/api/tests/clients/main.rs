//! The API as other people's programs use it: kube-rs without a socket and over TLS, random clients
//! against a model of what must happen, and clients at the same time. Invariant: nothing here knows how
//! the server does it.

#[cfg(test)]
mod dynamic;
#[cfg(test)]
mod identity;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod linear;
#[cfg(test)]
mod model;
#[cfg(test)]
mod nodes;
#[cfg(test)]
mod raw;
#[cfg(test)]
mod restriction;
#[cfg(test)]
mod served;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod typed;
#[cfg(test)]
mod watching;
