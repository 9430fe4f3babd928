//! Lets the controllers ask registries what images are for.
//!
//! Names that mean the machine they are read on are not asked for: on each node they mean another one, and what
//! listens on the server itself is no concern of pods. The same goes for images that this program makes of itself,
//! which no registry has.

use std::net::IpAddr;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use transom_controllers::{Answer, PullSecret, Question, Registry};
use transom_model::images::GROUP;
use transom_runtime::Credentials;
use transom_runtime::images::{Registries, Seen, credentials};

/// Asks as a node of this machine would.
#[derive(Debug)]
pub(super) struct Asker {
    registries: Registries,
}

impl Asker {
    pub(super) fn new(registries: Registries) -> Self {
        Self { registries }
    }
}

impl Registry for Asker {
    fn look<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<Answer, String>> {
        async move {
            if let Some(why) = refusal(&question.reference) {
                return Err(why.to_owned());
            }
            let known = question.known.as_deref();
            let logins = logins(question);
            let seen = self
                .registries
                .look(&question.reference, &logins, known)
                .await;
            match seen {
                Ok(Seen::Same) => Ok(Answer::Same),
                Ok(Seen::Image(found)) => Ok(Answer::Image {
                    digest: found.digest,
                    platforms: found.platforms,
                }),
                Err(error) => Err(error.to_string()),
            }
        }
        .boxed()
    }
}

fn logins(question: &Question) -> Vec<Credentials> {
    let image = &question.reference;
    let secrets = question.secrets.iter();
    secrets
        .flat_map(|secret| match secret {
            PullSecret::Config(bytes) => credentials::from_config(bytes, image),
            PullSecret::OldConfig(bytes) => credentials::from_old_config(bytes, image),
        })
        .collect()
}

/// Why nobody is asked for an image.
fn refusal(reference: &str) -> Option<&'static str> {
    let registry = reference.split('/').next().unwrap_or_default();
    let host = match registry.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => registry,
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_near = |address: IpAddr| {
        let is_link_local = match address {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        };
        address.is_loopback() || address.is_unspecified() || is_link_local
    };
    if host == "localhost" || host.parse().is_ok_and(is_near) {
        Some("the registry is on the node itself, which alone can ask it")
    } else if host == GROUP {
        Some("the image is made on the node, and no registry has it")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_the_machine_itself_is_not_asked_for() {
        for (reference, is_asked) in [
            ("docker.io/library/nginx:1", true),
            ("registry.example:5000/app:1", true),
            ("10.0.0.7:5000/app:1", true),
            ("localhost/app:1", false),
            ("localhost:5000/app:1", false),
            ("127.0.0.1:5000/app:1", false),
            ("[::1]:5000/app:1", false),
            ("169.254.169.254/app:1", false),
            ("0.0.0.0:5000/app:1", false),
            ("transom.dev/transom:1", false),
        ] {
            assert_eq!(refusal(reference).is_none(), is_asked, "{reference}");
        }
    }

    #[test]
    fn secrets_give_logins_for_their_registry_only() {
        let config = br#"{"auths": {"registry.example": {"username": "u", "password": "p"}}}"#;
        let question = |reference: &str| Question {
            reference: reference.to_owned(),
            known: None,
            secrets: vec![PullSecret::Config(config.to_vec())],
        };
        assert_eq!(logins(&question("registry.example/app:1")).len(), 1);
        assert!(logins(&question("other.example/app:1")).is_empty());
    }
}
