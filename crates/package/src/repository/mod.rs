//! Repositories: content-addressed archives under signed metadata that expires and never goes back.
