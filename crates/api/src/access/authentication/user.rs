//! A user as the rest of the server sees one.
//!
//! The groups of an authenticated user are complete: whoever makes a user adds the group that says so.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Names of groups that mean something to the server.
pub mod group {
    pub const AUTHENTICATED: &str = "system:authenticated";
    pub const UNAUTHENTICATED: &str = "system:unauthenticated";
    /// Members may do everything.
    pub const MASTERS: &str = "system:masters";
    pub const NODES: &str = "system:nodes";
    pub const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";
    pub const BOOTSTRAPPERS: &str = "system:bootstrappers";
}

const ANONYMOUS: &str = "system:anonymous";
const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";
const NODE_PREFIX: &str = "system:node:";

/// Whoever sent a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user with these groups, and that of all who are known.
    pub fn authenticated(name: impl Into<String>, groups: Vec<String>) -> Self {
        let mut user = Self {
            name: name.into(),
            groups,
            ..Self::default()
        };
        user.add_group(group::AUTHENTICATED);
        user
    }

    pub fn anonymous() -> Self {
        Self {
            name: ANONYMOUS.to_owned(),
            groups: vec![group::UNAUTHENTICATED.to_owned()],
            ..Self::default()
        }
    }

    pub fn is_anonymous(&self) -> bool {
        self.name == ANONYMOUS
    }

    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|member| member == group)
    }

    pub(super) fn add_group(&mut self, group: &str) {
        if !self.is_in(group) {
            self.groups.push(group.to_owned());
        }
    }

    /// The name of the node, if this is an agent on a node.
    pub fn node_name(&self) -> Option<&str> {
        let name = self.name.strip_prefix(NODE_PREFIX)?;
        (self.is_in(group::NODES) && !name.is_empty()).then_some(name)
    }

    /// The `UserInfo` of reviews: what is empty is left out.
    pub fn to_value(&self) -> Value {
        let mut info = Map::new();
        for (key, text) in [("username", &self.name), ("uid", &self.uid)] {
            if !text.is_empty() {
                info.insert(key.to_owned(), text.clone().into());
            }
        }
        if !self.groups.is_empty() {
            info.insert("groups".to_owned(), json!(self.groups));
        }
        if !self.extra.is_empty() {
            info.insert("extra".to_owned(), json!(self.extra));
        }
        info.into()
    }
}

/// The user name of a service account.
pub fn service_account_name(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}")
}

/// Namespace and name of the service account that a user name means.
pub fn split_service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
    let is_label = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    let is_name = !name.is_empty() && name.split('.').all(is_label);
    (is_label(namespace) && is_name).then_some((namespace, name))
}

/// The groups of every service account of a namespace.
pub fn service_account_groups(namespace: &str) -> Vec<String> {
    vec![
        group::SERVICE_ACCOUNTS.to_owned(),
        format!("{}:{namespace}", group::SERVICE_ACCOUNTS),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_names_of_service_accounts_are_split() {
        assert_eq!(
            split_service_account("system:serviceaccount:ns:a.b"),
            Some(("ns", "a.b"))
        );
        for wrong in [
            "system:serviceaccount:ns",
            "system:serviceaccount::name",
            "system:serviceaccount:ns:",
            "system:serviceaccount:ns:a:b",
            "system:serviceaccount:Ns:name",
            "serviceaccount:ns:name",
            "",
        ] {
            assert_eq!(split_service_account(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_node_is_one_by_name_and_group() {
        let groups = |name: &str| vec![name.to_owned()];
        let node = User::authenticated("system:node:a", groups(group::NODES));
        assert_eq!(node.node_name(), Some("a"));
        let pretender = User::authenticated("system:node:a", groups("other"));
        assert_eq!(pretender.node_name(), None);
        let nameless = User::authenticated("system:node:", groups(group::NODES));
        assert_eq!(nameless.node_name(), None);
    }
}
