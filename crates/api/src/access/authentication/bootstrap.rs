//! Bootstrap tokens: how a new node proves that it may ask for a certificate.
//!
//! The secret half is compared in constant time, so that nobody can guess it letter by letter.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::Timestamp;

use super::{Objects, User, group};

const NAMESPACE: &str = "kube-system";
const SECRET_TYPE: &str = "bootstrap.kubernetes.io/token";
const GROUP_PREFIX: &str = "system:bootstrappers:";
const LONGEST_GROUP_END: usize = 256;

/// The two halves of `abcdef.0123456789abcdef`; nothing else is a bootstrap token.
pub fn split(token: &str) -> Option<(&str, &str)> {
    let (id, secret) = token.split_once('.')?;
    let is_plain = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    (id.len() == 6 && secret.len() == 16 && is_plain(id) && is_plain(secret))
        .then_some((id, secret))
}

/// The user behind a bootstrap token; `None` if it is not one, is wrong, ended or not meant for this.
pub fn authenticate(token: &str, objects: &dyn Objects, now: Timestamp) -> Option<User> {
    let (id, secret_half) = split(token)?;
    let secret = objects.whole_secret(NAMESPACE, &format!("bootstrap-token-{id}"))?;
    if secret["type"] != SECRET_TYPE || !secret["metadata"]["deletionTimestamp"].is_null() {
        return None;
    }
    let field = |key: &str| -> Option<String> {
        let bytes = STANDARD.decode(secret["data"][key].as_str()?).ok()?;
        String::from_utf8(bytes).ok()
    };
    let expected = field("token-secret")?;
    if verify_slices_are_equal(expected.as_bytes(), secret_half.as_bytes()).is_err() {
        return None;
    }
    if field("token-id")? != id || field("usage-bootstrap-authentication")? != "true" {
        return None;
    }
    // An expiration that cannot be read counts as one that passed.
    if let Some(text) = field("expiration")
        && !text.is_empty()
        && !text.parse::<Timestamp>().is_ok_and(|ends| now < ends)
    {
        return None;
    }
    let mut groups = vec![group::BOOTSTRAPPERS.to_owned()];
    for extra in field("auth-extra-groups").unwrap_or_default().split(',') {
        let extra = extra.trim();
        if extra.is_empty() {
            continue;
        }
        // One group that is not allowed spoils the token: somebody wanted other rights than they get.
        if !is_bootstrap_group(extra) {
            return None;
        }
        if !groups.iter().any(|known| known == extra) {
            groups.push(extra.to_owned());
        }
    }
    Some(User::authenticated(
        format!("system:bootstrap:{id}"),
        groups,
    ))
}

fn is_bootstrap_group(name: &str) -> bool {
    let Some(end) = name.strip_prefix(GROUP_PREFIX) else {
        return false;
    };
    let is_allowed = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b':' | b'-')
    };
    let last = end.bytes().last();
    end.len() <= LONGEST_GROUP_END
        && end.bytes().all(is_allowed)
        && last.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::{super::Live, *};

    struct OneSecret(Value);

    impl Objects for OneSecret {
        fn service_account(&self, _: &str, _: &str) -> Option<Live> {
            None
        }
        fn pod(&self, _: &str, _: &str) -> Option<Live> {
            None
        }
        fn secret(&self, _: &str, _: &str) -> Option<Live> {
            None
        }
        fn node(&self, _: &str) -> Option<Live> {
            None
        }
        fn whole_secret(&self, _: &str, name: &str) -> Option<Arc<Value>> {
            (self.0["metadata"]["name"] == name).then(|| Arc::new(self.0.clone()))
        }
    }

    const TOKEN: &str = "abcdef.0123456789abcdef";

    fn ask(token: &str, change: impl FnOnce(&mut Value)) -> Option<User> {
        let data = |text: &str| STANDARD.encode(text);
        let mut secret = json!({
            "metadata": {"name": "bootstrap-token-abcdef", "namespace": "kube-system"},
            "type": SECRET_TYPE,
            "data": {
                "token-id": data("abcdef"),
                "token-secret": data("0123456789abcdef"),
                "expiration": data("2030-01-01T00:00:00Z"),
                "usage-bootstrap-authentication": data("true"),
                "auth-extra-groups": data("system:bootstrappers:nodes,system:bootstrappers:win"),
            },
        });
        change(&mut secret);
        let now = "2029-12-31T23:59:59Z".parse().unwrap();
        authenticate(token, &OneSecret(secret), now)
    }

    #[test]
    fn a_right_token_has_its_groups() {
        let user = ask(TOKEN, |_| {}).unwrap();
        assert_eq!(user.name, "system:bootstrap:abcdef");
        assert_eq!(
            user.groups,
            [
                "system:bootstrappers",
                "system:bootstrappers:nodes",
                "system:bootstrappers:win",
                "system:authenticated"
            ]
        );
    }

    #[test]
    fn what_is_not_a_bootstrap_token_is_nobody() {
        for token in [
            "",
            ".",
            "abcdef.0123456789abcdeF",
            "abcdef.0123456789abcde",
            "abcdef.0123456789abcdee",
            "abcdeg.0123456789abcdef",
            "abcdef.0123456789abcdef.",
            "äbcde.0123456789abcdef",
        ] {
            assert_eq!(ask(token, |_| {}), None, "{token}");
        }
    }

    #[test]
    fn a_secret_that_is_not_as_it_should_be_lets_nobody_in() {
        let set = |key: &'static str, text: &'static str| {
            move |secret: &mut Value| secret["data"][key] = STANDARD.encode(text).into()
        };
        assert_eq!(ask(TOKEN, set("expiration", "2029-12-31T23:59:58Z")), None);
        assert_eq!(ask(TOKEN, set("expiration", "soon")), None);
        assert_eq!(
            ask(TOKEN, set("usage-bootstrap-authentication", "yes")),
            None
        );
        assert_eq!(ask(TOKEN, set("token-id", "other1")), None);
        assert_eq!(ask(TOKEN, set("token-secret", "")), None);
        assert_eq!(ask(TOKEN, set("auth-extra-groups", "system:masters")), None);
        assert_eq!(ask(TOKEN, |secret| secret["type"] = "Opaque".into()), None);
        assert_eq!(ask(TOKEN, |secret| secret["data"] = Value::Null), None);
        let deleted = |secret: &mut Value| {
            secret["metadata"]["deletionTimestamp"] = "2029-01-01T00:00:00Z".into();
        };
        assert_eq!(ask(TOKEN, deleted), None);
        let endless = |secret: &mut Value| secret["data"]["expiration"] = Value::Null;
        assert!(ask(TOKEN, endless).is_some());
    }
}
