//! Writes that happen together, or not at all.

use std::collections::HashSet;

use bytes::Bytes;

use crate::{Entry, LeaseId, Revision, StoreError};

/// Writes and the conditions that they need.
#[derive(Clone, Debug, Default)]
pub struct Transaction {
    pub conditions: Vec<Condition>,
    /// At most one write for a key.
    pub writes: Vec<Write>,
}

impl Transaction {
    /// At most so many bytes of keys and values.
    ///
    /// As much as etcd takes, on every backend: what one store accepts, another one does too.
    pub const LARGEST: usize = 1024 * 1536 - 64 * 1024;

    /// At most so many bytes in a key.
    pub const LONGEST_KEY: usize = 4096;

    /// At most so many conditions, and at most so many writes.
    pub const MOST: usize = 128;

    /// Finds what no store may accept, whatever it holds.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let count = self.conditions.len().max(self.writes.len());
        if count > Self::MOST {
            return Err(StoreError::TooMany {
                count,
                limit: Self::MOST,
            });
        }
        let keys = self.conditions.iter().map(Condition::key);
        for key in keys.chain(self.writes.iter().map(Write::key)) {
            if key.is_empty() || key.len() > Self::LONGEST_KEY {
                return Err(StoreError::BadKey {
                    length: key.len(),
                    limit: Self::LONGEST_KEY,
                });
            }
        }
        let conditions = self
            .conditions
            .iter()
            .map(|condition| condition.key().len());
        let writes = self.writes.iter().map(Write::size);
        let size = conditions.chain(writes).sum();
        if size > Self::LARGEST {
            return Err(StoreError::TooLarge {
                size,
                limit: Self::LARGEST,
            });
        }
        let mut keys = HashSet::with_capacity(self.writes.len());
        for write in &self.writes {
            if !keys.insert(write.key()) {
                return Err(StoreError::TwoWrites {
                    key: write.key().to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Writes a key that must not exist yet.
    pub fn create(key: impl Into<String>, value: impl Into<Bytes>) -> Self {
        let key = key.into();
        Self {
            conditions: vec![Condition::Absent { key: key.clone() }],
            writes: vec![Write::Put {
                key,
                value: value.into(),
                lease: None,
            }],
        }
    }

    /// Replaces a key that must not have changed since `modified`.
    pub fn replace(key: impl Into<String>, modified: Revision, value: impl Into<Bytes>) -> Self {
        let key = key.into();
        Self {
            conditions: vec![Condition::Unchanged {
                key: key.clone(),
                modified,
            }],
            writes: vec![Write::Put {
                key,
                value: value.into(),
                lease: None,
            }],
        }
    }

    /// Deletes a key that must not have changed since `modified`.
    pub fn remove(key: impl Into<String>, modified: Revision) -> Self {
        let key = key.into();
        Self {
            conditions: vec![Condition::Unchanged {
                key: key.clone(),
                modified,
            }],
            writes: vec![Write::Delete { key }],
        }
    }
}

/// What must be true of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    Absent {
        key: String,
    },
    /// The key exists, and its newest value was written by `modified`.
    Unchanged {
        key: String,
        modified: Revision,
    },
}

impl Condition {
    pub fn key(&self) -> &str {
        match self {
            Self::Absent { key } | Self::Unchanged { key, .. } => key,
        }
    }

    /// Whether this is true of a key that was last written by `newest`, if it exists.
    pub(crate) fn holds(&self, newest: Option<Revision>) -> bool {
        match self {
            Self::Absent { .. } => newest.is_none(),
            Self::Unchanged { modified, .. } => newest == Some(*modified),
        }
    }
}

/// One write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    Put {
        key: String,
        value: Bytes,
        lease: Option<LeaseId>,
    },
    /// Deleting what does not exist is no change, and no error.
    Delete { key: String },
}

impl Write {
    pub fn key(&self) -> &str {
        match self {
            Self::Put { key, .. } | Self::Delete { key } => key,
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Put { key, value, .. } => key.len() + value.len(),
            Self::Delete { key } => key.len(),
        }
    }
}

/// How a transaction ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All writes are made. The revision is the store's newest one if they changed nothing.
    Committed(Revision),
    /// Nothing is written: the condition with this number does not hold.
    Refused {
        condition: usize,
        /// What the key of that condition is.
        current: Option<Entry>,
    },
}
