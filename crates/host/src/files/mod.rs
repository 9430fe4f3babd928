//! Files: atomic, durable, lockable, and safe to unpack into.
