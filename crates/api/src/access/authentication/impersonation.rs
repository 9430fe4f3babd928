//! Acting as somebody else: the headers that ask for it, and the rights that it takes.
//!
//! Every part of the wanted identity is a question of its own; all of them must be allowed.

use std::{collections::BTreeMap, sync::Arc};

use super::{User, group, service_account_groups, split_service_account};
use crate::{
    access::authorization::{Attributes, Resource},
    status::ApiError,
};

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA_PREFIX: &str = "impersonate-extra-";
const AUTHENTICATION: &str = "authentication.k8s.io";
/// More parts than this are no identity but an attack on the authorizer.
const MOST_PARTS: usize = 256;

/// Who is to be impersonated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impersonation {
    target: User,
    explicit_groups: bool,
}

impl Impersonation {
    /// Reads the headers of a request, with their names in lower case. `None`: nobody is impersonated. A value
    /// that cannot be read is an error: whoever asked to be somebody else must not go on as themselves.
    pub fn read<'a>(
        headers: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> Result<Option<Self>, ApiError> {
        let mut target = User::default();
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut parts = 0;
        for (name, value) in headers {
            if ![USER, GROUP, UID].contains(&name) && !name.starts_with(EXTRA_PREFIX) {
                continue;
            }
            let value = str::from_utf8(value).map_err(|_| {
                ApiError::bad_request(format!("the value of the header {name} is not UTF-8"))
            })?;
            match name {
                // Of several values the first one counts.
                USER if target.name.is_empty() => value.clone_into(&mut target.name),
                UID if target.uid.is_empty() => value.clone_into(&mut target.uid),
                USER | UID => {}
                GROUP => target.groups.push(value.to_owned()),
                _ => {
                    let key = name.strip_prefix(EXTRA_PREFIX).unwrap_or_default();
                    let values = extra.entry(unescape(&key.to_ascii_lowercase()));
                    values.or_default().push(value.to_owned());
                }
            }
            parts += 1;
            if parts > MOST_PARTS {
                let text = format!("more than {MOST_PARTS} impersonation headers");
                return Err(ApiError::bad_request(text));
            }
        }
        target.extra = extra;
        if target.name.is_empty() {
            if parts == 0 {
                return Ok(None);
            }
            return Err(ApiError::internal(
                "requested impersonation of groups, a uid or extra values without impersonating a user",
            ));
        }
        Ok(Some(Self {
            explicit_groups: !target.groups.is_empty(),
            target,
        }))
    }

    /// What `asking` must be allowed, all of it.
    pub fn checks(&self, asking: &Arc<User>) -> Vec<Attributes> {
        let check =
            |group: &str, resource: &str, subresource: &str, namespace: &str, name: &str| {
                let about = Resource {
                    group: group.to_owned(),
                    version: "v1".to_owned(),
                    resource: resource.to_owned(),
                    subresource: subresource.to_owned(),
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                    fields: Vec::new(),
                };
                Attributes::resource(Arc::clone(asking), "impersonate", about)
            };
        let mut checks = Vec::new();
        checks.push(match split_service_account(&self.target.name) {
            Some((namespace, name)) => check("", "serviceaccounts", "", namespace, name),
            None => check("", "users", "", "", &self.target.name),
        });
        for name in &self.target.groups {
            checks.push(check("", "groups", "", "", name));
        }
        for (key, values) in &self.target.extra {
            for value in values {
                checks.push(check(AUTHENTICATION, "userextras", key, "", value));
            }
        }
        if !self.target.uid.is_empty() {
            checks.push(check(AUTHENTICATION, "uids", "", "", &self.target.uid));
        }
        checks
    }

    /// The user that the request continues as, once everything is allowed.
    pub fn into_user(self) -> User {
        let mut user = self.target;
        if !self.explicit_groups
            && let Some((namespace, _)) = split_service_account(&user.name)
        {
            user.groups = service_account_groups(namespace);
        }
        if user.is_anonymous() {
            user.add_group(group::UNAUTHENTICATED);
        } else if !user.is_in(group::UNAUTHENTICATED) {
            user.add_group(group::AUTHENTICATED);
        }
        user
    }
}

/// Keys may have characters that header names cannot, written as `%xx`. What is not such a form stays.
fn unescape(key: &str) -> String {
    let mut bytes = Vec::with_capacity(key.len());
    let mut rest = key.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = match (first, tail) {
            (b'%', [high, low, ..]) => hex_digit(*high).zip(hex_digit(*low)),
            _ => None,
        };
        if let Some((high, low)) = escaped {
            bytes.push(high * 16 + low);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| key.to_owned())
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(headers: &[(&str, &str)]) -> Result<Option<Impersonation>, ApiError> {
        Impersonation::read(
            headers
                .iter()
                .map(|(name, value)| (*name, value.as_bytes())),
        )
    }

    fn sentences(headers: &[(&str, &str)]) -> Vec<String> {
        let asking = Arc::new(User::authenticated("eve", Vec::new()));
        let checks = read(headers).unwrap().unwrap().checks(&asking);
        let all = checks.iter().map(|check| check.forbidden("").message);
        all.collect()
    }

    #[test]
    fn a_request_without_such_headers_impersonates_nobody() {
        assert_eq!(read(&[("accept", "*/*")]).unwrap(), None);
    }

    #[test]
    fn groups_without_a_user_are_an_error() {
        for header in [
            ("impersonate-group", "system:masters"),
            ("impersonate-uid", "1"),
            ("impersonate-extra-scopes", "all"),
        ] {
            assert_eq!(read(&[header]).unwrap_err().code, 500);
        }
        let many = vec![("impersonate-group", "a"); 300];
        assert_eq!(read(&many).unwrap_err().code, 400);
    }

    #[test]
    fn a_name_beyond_ascii_is_asked_for_and_one_that_is_no_text_is_refused() {
        let asked = sentences(&[("impersonate-user", "jürgen")]);
        assert!(asked[0].starts_with("users \"jürgen\" is forbidden"));
        for name in [USER, GROUP, UID, "impersonate-extra-scopes"] {
            let headers = [(USER, &b"bob"[..]), (name, &b"j\xfcrgen"[..])];
            assert_eq!(
                Impersonation::read(headers).unwrap_err().code,
                400,
                "{name}"
            );
        }
        let others = [("x-name", &b"j\xfcrgen"[..])];
        assert_eq!(Impersonation::read(others).unwrap(), None);
    }

    #[test]
    fn every_part_is_a_question() {
        let asked = sentences(&[
            ("impersonate-user", "bob"),
            ("impersonate-group", "dev"),
            ("impersonate-uid", "7"),
            ("impersonate-extra-Example.com%2Fscope", "all"),
        ]);
        insta::assert_snapshot!(asked.join("\n"), @r#"
        users "bob" is forbidden: User "eve" cannot impersonate resource "users" in API group "" at the cluster scope
        groups "dev" is forbidden: User "eve" cannot impersonate resource "groups" in API group "" at the cluster scope
        userextras.authentication.k8s.io "all" is forbidden: User "eve" cannot impersonate resource "userextras/example.com/scope" in API group "authentication.k8s.io" at the cluster scope
        uids.authentication.k8s.io "7" is forbidden: User "eve" cannot impersonate resource "uids" in API group "authentication.k8s.io" at the cluster scope
        "#);
        let asked = sentences(&[("impersonate-user", "system:serviceaccount:ns:sa")]);
        insta::assert_snapshot!(asked.join("\n"), @r#"
        serviceaccounts "sa" is forbidden: User "eve" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "ns"
        "#);
    }

    #[test]
    fn the_new_user_has_the_groups_that_it_would_have_had() {
        let become_user =
            |headers: &[(&str, &str)]| read(headers).unwrap().unwrap().into_user().groups;
        assert_eq!(
            become_user(&[("impersonate-user", "bob")]),
            ["system:authenticated"]
        );
        assert_eq!(
            become_user(&[("impersonate-user", "system:anonymous")]),
            ["system:unauthenticated"]
        );
        assert_eq!(
            become_user(&[("impersonate-user", "system:serviceaccount:ns:sa")]),
            [
                "system:serviceaccounts",
                "system:serviceaccounts:ns",
                "system:authenticated"
            ]
        );
        assert_eq!(
            become_user(&[
                ("impersonate-user", "system:serviceaccount:ns:sa"),
                ("impersonate-group", "dev")
            ]),
            ["dev", "system:authenticated"]
        );
    }
}
