//! Which fields an endpoint writes. Nobody owns a field by way of an endpoint that does not write it.

use super::{compare::Changes, set::FieldSet};

/// In a path: any field, any item.
pub const ANY: &str = "*";

/// What can be written, and so be owned, at an endpoint.
#[derive(Clone, Debug)]
pub enum Scope {
    /// Everything but these fields and what is below them.
    AllBut(FieldSet),
    /// What is at these paths or below them.
    Only(&'static [&'static [&'static str]]),
}

impl Scope {
    pub fn everything() -> Self {
        Self::AllBut(FieldSet::default())
    }

    pub fn all_but(paths: &[&[&str]]) -> Self {
        Self::AllBut(FieldSet::of_fields(paths))
    }

    /// The part of a set that is in here.
    pub(super) fn of(&self, set: &FieldSet) -> FieldSet {
        match self {
            Self::AllBut(ignored) => set.without(ignored),
            Self::Only(paths) => set.only(paths),
        }
    }

    pub(super) fn of_changes(&self, changes: &Changes) -> Changes {
        Changes {
            removed: self.of(&changes.removed),
            modified: self.of(&changes.modified),
            added: self.of(&changes.added),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_scope_of_paths_has_what_is_below_them_and_nothing_above() {
        let set = FieldSet::decode(&json!({
            "f:metadata": {"f:labels": {"f:a": {}}},
            "f:spec": {".": {}, "f:nodeName": {}, "f:containers": {
                "k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:resources": {".": {}, "f:limits": {}}},
                "k:{\"name\":\"b\"}": {".": {}, "f:name": {}},
            }},
        }))
        .unwrap();
        let scope = Scope::Only(&[&["spec", "containers", ANY, "resources"], &["status"]]);
        assert_eq!(
            scope.of(&set).encode(),
            json!({"f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {
                "f:resources": {".": {}, "f:limits": {}},
            }}}})
        );
        assert_eq!(Scope::everything().of(&set), set);
        let rest = Scope::all_but(&[&["spec"], &["metadata", "labels"]]).of(&set);
        assert!(rest.is_empty());
    }
}
