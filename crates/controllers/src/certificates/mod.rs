//! Approves the certificates that nodes ask for, has approved requests signed, and removes old requests.
//!
//! The key of the authority is not here: what signs is given from outside, and checks the rules of each signer.

mod decide;
mod request;

use std::{fmt::Debug, sync::Arc, time::Duration};

use k8s_openapi::{
    ByteString,
    api::{
        authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
        certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition},
        core::v1::Node,
    },
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::Timestamp,
};
use kube::{
    Api, Client,
    api::{DeleteParams, PostParams},
    runtime::watcher::Config,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::{
    decide::{Ground, Stage},
    request::Names,
};
use crate::{
    fault::{Fault, ask, found},
    known::{Key, Known, keep},
    queue::{Next, Queue},
};

const AT_ONCE: usize = 4;
/// How long a request that could be approved waits at most until its grounds are looked at again.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// Signs requests that were approved.
pub trait Signer: Debug + Send + Sync {
    /// The certificate, in PEM, for a `CertificateSigningRequest`.
    fn sign(&self, request: &Value) -> Result<String, Unsigned>;
}

/// Why a request was not signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsigned {
    /// Another signer is meant.
    NotOurs,
    /// It never will be: it breaks a rule of its signer.
    Refused(String),
    /// It may be, later.
    Failed(String),
}

struct World {
    client: Client,
    signer: Option<Arc<dyn Signer>>,
    requests: Known<CertificateSigningRequest>,
    queue: Queue<String>,
}

pub(crate) async fn run(client: Client, signer: Option<Arc<dyn Signer>>, stop: CancellationToken) {
    let world = World {
        client,
        signer,
        requests: Known::new(),
        queue: Queue::new(),
    };
    let news = keep(
        Api::<CertificateSigningRequest>::all(world.client.clone()),
        Config::default(),
        &world.requests,
        |mut request| {
            request.metadata.managed_fields = None;
            Some(request)
        },
        |key, _, new| {
            if new.is_some() {
                world.queue.add(key.name.clone());
            }
        },
    );
    let look = |name| world.look(name);
    let work = world.queue.drive("certificates", AT_ONCE, &stop, look);
    tokio::select! {
        () = work => {}
        () = news => {}
    }
}

fn condition(kind: &str, reason: &str, message: &str) -> CertificateSigningRequestCondition {
    let now = Timestamp::now();
    CertificateSigningRequestCondition {
        type_: kind.to_owned(),
        status: "True".to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_update_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    }
}

impl World {
    async fn look(&self, name: String) -> Result<Next, Fault> {
        let Some(request) = self.requests.get("", &name) else {
            return Ok(Next::Done);
        };
        let left = decide::ends(&request).duration_since(Timestamp::now());
        let Ok(left) = Duration::try_from(left) else {
            return self.remove(&request).await;
        };
        self.queue.add_after(name, left);
        match decide::stage(&request) {
            Stage::Pending => self.approve(&request).await,
            Stage::Approved => self.sign(&request).await,
            Stage::Issued | Stage::Over => Ok(Next::Done),
        }
    }

    async fn remove(&self, request: &CertificateSigningRequest) -> Result<Next, Fault> {
        let requests: Api<CertificateSigningRequest> = Api::all(self.client.clone());
        let key = Key::of(&request.metadata);
        found(ask(requests.delete(&key.name, &DeleteParams::default())).await)?;
        self.requests.forget(&key);
        Ok(Next::Done)
    }

    async fn approve(&self, request: &CertificateSigningRequest) -> Result<Next, Fault> {
        let Some(names) = Names::read(&request.spec.request.0) else {
            return Ok(Next::Done);
        };
        let grounds = decide::grounds(&request.spec, &names);
        if grounds.is_empty() {
            return Ok(Next::Done);
        }
        for ground in grounds {
            let message = match ground {
                Ground::Right {
                    subresource,
                    message,
                } => {
                    let may = self.may(request, subresource).await?;
                    may.then_some(message)
                }
                Ground::NamesOf { node } => {
                    let nodes: Api<Node> = Api::all(self.client.clone());
                    let node = found(ask(nodes.get(&node)).await)?;
                    node.filter(|node| decide::are_names_of(&names, node))
                        .map(|_| decide::SERVING_MESSAGE)
                }
            };
            if let Some(message) = message {
                let approved = condition("Approved", "AutoApproved", message);
                return self.write(request, "approval", approved).await;
            }
        }
        // Rights may be given later, and a node may tell its addresses.
        Ok(Next::Again(LONGEST_PAUSE))
    }

    /// Whether who asks may create a subresource of requests.
    async fn may(
        &self,
        request: &CertificateSigningRequest,
        subresource: &str,
    ) -> Result<bool, Fault> {
        let spec = &request.spec;
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: spec.username.clone(),
                uid: spec.uid.clone(),
                groups: spec.groups.clone(),
                extra: spec.extra.clone(),
                resource_attributes: Some(ResourceAttributes {
                    group: Some("certificates.k8s.io".to_owned()),
                    resource: Some("certificatesigningrequests".to_owned()),
                    verb: Some("create".to_owned()),
                    version: Some("*".to_owned()),
                    subresource: Some(subresource.to_owned()),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let answer = ask(reviews.create(&PostParams::default(), &review)).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }

    async fn sign(&self, request: &CertificateSigningRequest) -> Result<Next, Fault> {
        let Some(signer) = &self.signer else {
            return Ok(Next::Done);
        };
        match signer.sign(&json!(request)) {
            Ok(pem) => {
                let mut changed = request.clone();
                let status = changed.status.get_or_insert_default();
                status.certificate = Some(ByteString(pem.into_bytes()));
                self.replace(&changed, "status").await
            }
            Err(Unsigned::NotOurs) => Ok(Next::Done),
            Err(Unsigned::Refused(why)) => {
                let failed = condition("Failed", "SignerValidationFailure", &why);
                self.write(request, "status", failed).await
            }
            Err(Unsigned::Failed(why)) => {
                let name = request.metadata.name.as_deref();
                tracing::warn!(name, why, "a certificate could not be signed");
                Ok(Next::Again(LONGEST_PAUSE))
            }
        }
    }

    async fn write(
        &self,
        request: &CertificateSigningRequest,
        subresource: &str,
        condition: CertificateSigningRequestCondition,
    ) -> Result<Next, Fault> {
        let mut changed = request.clone();
        let status = changed.status.get_or_insert_default();
        status.conditions.get_or_insert_default().push(condition);
        self.replace(&changed, subresource).await
    }

    async fn replace(
        &self,
        request: &CertificateSigningRequest,
        subresource: &str,
    ) -> Result<Next, Fault> {
        let requests: Api<CertificateSigningRequest> = Api::all(self.client.clone());
        let name = request.metadata.name.as_deref().unwrap_or_default();
        let parameters = PostParams::default();
        let replaced = requests.replace_subresource(subresource, name, &parameters, request);
        found(ask(replaced).await)?;
        Ok(Next::Done)
    }
}
