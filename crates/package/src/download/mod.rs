//! Downloads: resumed, bounded, retried with an end, and never seen under their name before the digest is right.
