//! Bindings: who gets which role.
//!
//! A service account is a user with a long name; as a subject it is nothing else.

use serde_json::Value;

use crate::access::authentication::service_account_name;

/// Whom a binding is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Subject {
    User(String),
    Group(String),
}

/// What a binding gives to one subject.
#[derive(Debug)]
pub(super) struct Binding {
    /// `Role` or `ClusterRole`.
    pub(super) kind: String,
    pub(super) role: String,
    /// The subject in a sentence.
    subject: String,
}

impl Binding {
    pub(super) fn of(object: &Value, subject: &str) -> Self {
        let text = |key: &str| {
            let value = object["roleRef"][key].as_str();
            value.unwrap_or_default().to_owned()
        };
        Self {
            kind: text("kind"),
            role: text("name"),
            subject: subject.to_owned(),
        }
    }

    /// Why a request was allowed.
    pub(super) fn reason(&self, namespace: &str, name: &str) -> String {
        let Self {
            kind,
            role,
            subject,
        } = self;
        if namespace.is_empty() {
            format!("RBAC: allowed by ClusterRoleBinding {name:?} of {kind} {role:?} to {subject}")
        } else {
            let name = format!("{name}/{namespace}");
            format!("RBAC: allowed by RoleBinding {name:?} of {kind} {role:?} to {subject}")
        }
    }
}

/// The subjects of a binding, each with its sentence. What is no subject is left out.
pub(super) fn subjects_of(object: &Value, namespace: &str) -> Vec<(Subject, String)> {
    let subjects = object["subjects"].as_array().into_iter().flatten();
    subjects
        .filter_map(|subject| {
            let text = |key: &str| subject[key].as_str().unwrap_or_default();
            let (kind, name) = (text("kind"), text("name"));
            match kind {
                "User" => Some((Subject::User(name.to_owned()), format!("{kind} {name:?}"))),
                "Group" => Some((Subject::Group(name.to_owned()), format!("{kind} {name:?}"))),
                "ServiceAccount" => {
                    let home = match text("namespace") {
                        "" => namespace,
                        home => home,
                    };
                    let place = format!("{name}/{home}");
                    (!home.is_empty()).then(|| {
                        (
                            Subject::User(service_account_name(home, name)),
                            format!("{kind} {place:?}"),
                        )
                    })
                }
                _ => None,
            }
        })
        .collect()
}
