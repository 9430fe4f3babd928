//! Fills secrets of type `kubernetes.io/service-account-token`, and removes them with their account.
//!
//! The key is not here: what signs is given from outside. A token that a secret has is never replaced.

use std::{fmt::Debug, sync::Arc};

use k8s_openapi::{
    ByteString,
    api::core::v1::{Secret, ServiceAccount},
};
use kube::{
    Api, Client,
    api::{DeleteParams, PostParams, Preconditions},
    core::PartialObjectMeta,
    runtime::watcher::Config,
};
use tokio_util::sync::CancellationToken;

use crate::{
    fault::{Fault, ask},
    known::{Key, Known, keep},
    queue::{Next, Queue},
};

const AT_ONCE: usize = 4;
const TYPE: &str = "kubernetes.io/service-account-token";
const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";

/// Makes the tokens that stand in secrets.
pub trait TokenSigner: Debug + Send + Sync {
    /// A token of an account for one secret in its namespace, or why there is none.
    fn token(
        &self,
        namespace: &str,
        secret: &str,
        account: &str,
        account_uid: &str,
    ) -> Result<String, String>;
}

/// A secret as far as it matters here; nothing secret is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    uid: String,
    account: String,
    /// The one that it was filled for.
    account_uid: Option<String>,
    is_whole: bool,
    is_going: bool,
}

impl Held {
    /// `None` if it is for something else.
    fn read(secret: Secret, root_ca: &str) -> Option<Self> {
        if secret.type_.as_deref() != Some(TYPE) {
            return None;
        }
        let is_whole = is_whole(&secret, root_ca);
        let mut annotations = secret.metadata.annotations.unwrap_or_default();
        Some(Self {
            uid: secret.metadata.uid?,
            account: annotations.remove(ACCOUNT_NAME)?,
            account_uid: annotations.remove(ACCOUNT_UID),
            is_whole,
            is_going: secret.metadata.deletion_timestamp.is_some(),
        })
    }
}

fn is_whole(secret: &Secret, root_ca: &str) -> bool {
    let field = |key: &str| {
        let data = secret.data.as_ref()?;
        data.get(key).map(|bytes| bytes.0.as_slice())
    };
    field("token").is_some_and(|token| !token.is_empty())
        && field("ca.crt") == Some(root_ca.as_bytes())
        && field("namespace") == secret.metadata.namespace.as_deref().map(str::as_bytes)
}

/// What is to be done about a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Nothing,
    Fill,
    Remove,
}

/// Decides from the secret, and from the uid of its account if that exists.
fn plan_step(held: &Held, account: Option<&str>) -> Step {
    match (account, held.account_uid.as_deref()) {
        _ if held.is_going => Step::Nothing,
        // It may have been made before its account; then it waits.
        (None, None) => Step::Nothing,
        (None, Some(_)) => Step::Remove,
        (Some(account), Some(known)) if account != known => Step::Remove,
        (Some(_), Some(_)) if held.is_whole => Step::Nothing,
        (Some(_), _) => Step::Fill,
    }
}

struct World {
    client: Client,
    signer: Arc<dyn TokenSigner>,
    root_ca: Arc<str>,
    secrets: Known<Held>,
    /// The uids of accounts.
    accounts: Known<String>,
}

pub(crate) async fn run(
    client: Client,
    signer: Arc<dyn TokenSigner>,
    root_ca: Arc<str>,
    stop: CancellationToken,
) {
    let world = World {
        client,
        signer,
        root_ca,
        secrets: Known::new(),
        accounts: Known::new(),
    };
    let queue = Queue::new();
    let secrets = keep(
        Api::<Secret>::all(world.client.clone()),
        Config::default().fields(&format!("type={TYPE}")),
        &world.secrets,
        |secret| Held::read(secret, &world.root_ca),
        |key, _, new| {
            if new.is_some() {
                queue.add(key.clone());
            }
        },
    );
    let accounts = keep(
        Api::<PartialObjectMeta<ServiceAccount>>::all(world.client.clone()),
        Config::default(),
        &world.accounts,
        |account| account.metadata.uid,
        |account, _, _| {
            for key in world.secrets.keys() {
                let held = world.secrets.get(&key.namespace, &key.name);
                let is_its = held.is_some_and(|held| held.account == account.name);
                if key.namespace == account.namespace && is_its {
                    queue.add(key);
                }
            }
        },
    );
    let work = async {
        let complete = async { tokio::join!(world.secrets.complete(), world.accounts.complete()) };
        if stop.run_until_cancelled(complete).await.is_some() {
            let look = |key| look(&world, key);
            queue.drive("account-tokens", AT_ONCE, &stop, look).await;
        }
    };
    tokio::select! {
        () = work => {}
        ((), ()) = async { tokio::join!(secrets, accounts) } => {}
    }
}

async fn look(world: &World, key: Key) -> Result<Next, Fault> {
    let Some(held) = world.secrets.get(&key.namespace, &key.name) else {
        return Ok(Next::Done);
    };
    let account = world.accounts.get(&key.namespace, &held.account);
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &key.namespace);
    let done = match plan_step(&held, account.as_ref().map(|uid| uid.as_str())) {
        Step::Nothing => return Ok(Next::Done),
        Step::Remove => {
            let parameters = DeleteParams {
                preconditions: Some(Preconditions {
                    uid: Some(held.uid.clone()),
                    resource_version: None,
                }),
                ..DeleteParams::default()
            };
            ask(secrets.delete(&key.name, &parameters))
                .await
                .map(|_| ())
        }
        Step::Fill => {
            let uid = account.as_deref().map_or("", String::as_str);
            fill(world, &secrets, &key, uid).await
        }
    };
    match done {
        // Somebody changed or removed it meanwhile: news of that bring the next look.
        Err(fault) if fault.is_absent() || fault.is_conflict() => Ok(Next::Done),
        Err(fault) => Err(fault),
        Ok(()) => Ok(Next::Done),
    }
}

async fn fill(
    world: &World,
    secrets: &Api<Secret>,
    key: &Key,
    account_uid: &str,
) -> Result<(), Fault> {
    let mut secret = ask(secrets.get(&key.name)).await?;
    let annotations = secret.metadata.annotations.get_or_insert_default();
    let Some(account) = annotations.get(ACCOUNT_NAME).cloned() else {
        return Ok(());
    };
    annotations.insert(ACCOUNT_UID.to_owned(), account_uid.to_owned());
    let data = secret.data.get_or_insert_default();
    if data.get("token").is_none_or(|token| token.0.is_empty()) {
        let signed = world
            .signer
            .token(&key.namespace, &key.name, &account, account_uid);
        match signed {
            Ok(token) => {
                data.insert("token".to_owned(), ByteString(token.into_bytes()));
            }
            Err(reason) => {
                let (namespace, name) = (&key.namespace, &key.name);
                tracing::error!(namespace, name, reason, "a secret gets no token");
                return Ok(());
            }
        }
    }
    for (field, text) in [("ca.crt", &*world.root_ca), ("namespace", &key.namespace)] {
        data.insert(field.to_owned(), ByteString(text.as_bytes().to_vec()));
    }
    ask(secrets.replace(&key.name, &PostParams::default(), &secret))
        .await
        .map(|_| ())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn held(account_uid: Option<&str>, is_whole: bool) -> Held {
        Held {
            uid: "u".to_owned(),
            account: "sa".to_owned(),
            account_uid: account_uid.map(str::to_owned),
            is_whole,
            is_going: false,
        }
    }

    #[test]
    fn a_secret_is_filled_once_and_goes_with_its_account() {
        for (held, account, step) in [
            (held(None, false), None, Step::Nothing),
            (held(None, false), Some("a"), Step::Fill),
            (held(None, true), Some("a"), Step::Fill),
            (held(Some("a"), false), Some("a"), Step::Fill),
            (held(Some("a"), true), Some("a"), Step::Nothing),
            (held(Some("a"), true), None, Step::Remove),
            (held(Some("a"), true), Some("b"), Step::Remove),
        ] {
            assert_eq!(plan_step(&held, account), step, "{held:?} {account:?}");
        }
        let going = Held {
            is_going: true,
            ..held(Some("a"), true)
        };
        assert_eq!(plan_step(&going, None), Step::Nothing);
    }

    #[test]
    fn a_secret_is_whole_with_a_token_and_what_is_true_now() {
        let read = |kind: &str, ca: &str| {
            let bytes = |text: &str| json!(ByteString(text.as_bytes().to_vec()));
            let secret = json!({
                "metadata": {
                    "name": "s", "namespace": "n", "uid": "u",
                    "annotations": {ACCOUNT_NAME: "sa", ACCOUNT_UID: "a"},
                },
                "type": kind,
                "data": {"token": bytes("t"), "ca.crt": bytes(ca), "namespace": bytes("n")},
            });
            Held::read(serde_json::from_value(secret).unwrap(), "PEM")
        };
        assert_eq!(read(TYPE, "PEM"), Some(held(Some("a"), true)));
        assert_eq!(read(TYPE, "old"), Some(held(Some("a"), false)));
        assert_eq!(read("Opaque", "PEM"), None);
    }
}
