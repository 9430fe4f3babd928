//! Figures of the node and its pods, as metrics servers and people read them. They come from the last pass of
//! [`crate::figures`]; nothing is measured for a request.

mod own;
mod resource;
mod summary;
#[cfg(test)]
mod tests;
mod text;

pub(super) use own::metrics;
pub(super) use resource::metrics as resource_metrics;
pub(super) use summary::summary;
