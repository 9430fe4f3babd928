//! Users and access lists: who may read a secret file.
