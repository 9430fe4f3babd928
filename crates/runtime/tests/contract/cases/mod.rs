//! What every runtime promises, a case per sentence.

mod adoption;
mod containers;
mod ends;
mod images;
mod pods;
pub(crate) mod streams;

use std::sync::Arc;

use futures::future::BoxFuture;

use super::backend::Backend;

pub(crate) type Run = fn(Arc<dyn Backend>) -> BoxFuture<'static, ()>;

/// Names of functions that take a backend, with the functions.
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        pub(crate) const CASES: &[(&str, super::Run)] =
            &[$((stringify!($name), |backend| Box::pin($name(backend)))),*];
    };
}
use cases;

/// The contract in parts, by what they are about.
pub(crate) const PARTS: &[(&str, &[(&str, Run)])] = &[
    ("pods", pods::CASES),
    ("containers", containers::CASES),
    ("ends", ends::CASES),
    ("streams", streams::CASES),
    ("adoption", adoption::CASES),
    ("images", images::CASES),
];

pub(crate) fn all() -> Vec<(&'static str, Run)> {
    PARTS.iter().flat_map(|(_, part)| *part).copied().collect()
}
