//! Who is asking and whether they may: the door that every request goes through.
//!
//! Roles, bindings and what nodes run are followed by the feed, so a decision looks into memory only.

use std::sync::{Arc, PoisonError, RwLock};

use http::{HeaderMap, Method};
use jiff::Timestamp;

use crate::{
    access::{
        authentication::{Authenticator, Presented, User, impersonation::Impersonation, websocket},
        authorization::{self, Attributes, Authorizer, RbacIndex, Resource, Verdict},
        pki::{Pki, TokenKeys},
    },
    cache::{Cached, Observer},
    http::path::ResourcePath,
    registry::{Kind, Verb},
    server::Peer,
    state::Api,
    status::ApiError,
};

/// What decides about requests.
#[derive(Debug, Default)]
pub struct Guard {
    pub(crate) authenticator: Authenticator,
    pki: Option<Arc<Pki>>,
    authorizer: RwLock<Authorizer>,
}

impl Guard {
    /// A guard that knows these keys and certificates.
    pub fn new(pki: Arc<Pki>) -> Self {
        Self {
            pki: Some(pki),
            ..Self::default()
        }
    }

    /// The keys that tokens are signed with; a server without them has no tokens.
    pub(crate) fn keys(&self) -> Result<Arc<TokenKeys>, ApiError> {
        let pki = self
            .pki
            .as_ref()
            .ok_or_else(|| ApiError::internal("this server has no token keys"))?;
        Ok(pki.token_keys())
    }

    /// The certificates for connections to nodes; a server without them reaches none.
    pub(crate) fn pki(&self) -> Result<&Pki, ApiError> {
        self.pki.as_deref().ok_or_else(|| {
            ApiError::internal("this server has no certificates to reach nodes with")
        })
    }

    /// Who sent a request.
    pub(crate) fn user(
        &self,
        api: &Api,
        peer: Option<&Peer>,
        headers: &HeaderMap,
        path: &str,
        now: Timestamp,
    ) -> Result<User, ApiError> {
        // What is no text is no token, and never as if nothing had been presented.
        let header = headers
            .get("authorization")
            .map(|value| value.to_str().unwrap_or_default().to_owned());
        let authorization =
            header.or_else(|| websocket::offered_token(headers).map(|it| format!("Bearer {it}")));
        let certificate = peer.and_then(|peer| peer.certificate.as_ref());
        let presented = Presented {
            certificate: certificate.map(AsRef::as_ref),
            authorization: authorization.as_deref(),
        };
        let keys = self.keys()?;
        let user = self
            .authenticator
            .authenticate(presented, path, &keys, api, now)?;
        if let Some(peer) = peer.filter(|_| !user.is_anonymous()) {
            peer.prove();
        }
        self.impersonate(user, headers)
    }

    /// Somebody who may do so can act as another.
    fn impersonate(&self, user: User, headers: &HeaderMap) -> Result<User, ApiError> {
        let texts = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_bytes()));
        let Some(wish) = Impersonation::read(texts)? else {
            return Ok(user);
        };
        for attributes in wish.checks(&Arc::new(user)) {
            self.require(&attributes)?;
        }
        Ok(wish.into_user())
    }

    pub(crate) fn decide(&self, attributes: &Attributes) -> Verdict {
        self.read(|authorizer| authorizer.authorize(attributes))
    }

    pub(crate) fn require(&self, attributes: &Attributes) -> Result<(), ApiError> {
        self.read(|authorizer| authorizer.require(attributes))
    }

    pub(crate) fn read<T>(&self, look: impl FnOnce(&Authorizer) -> T) -> T {
        look(
            &self
                .authorizer
                .read()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    fn write(&self, change: impl FnOnce(&mut Authorizer)) {
        change(
            &mut self
                .authorizer
                .write()
                .unwrap_or_else(PoisonError::into_inner),
        );
    }
}

/// What a request for a resource wants, in the words of rules.
pub(crate) fn attributes(
    user: User,
    kind: &Kind,
    place: &ResourcePath,
    verb: Verb,
    fields: &str,
) -> Attributes {
    let is_list = matches!(verb, Verb::List | Verb::Watch | Verb::DeleteCollection);
    let fields = authorization::review::narrowed_fields(fields);
    let name = if place.name.is_empty() && is_list {
        // A list of one name may be permitted by that name.
        let mut names = fields.iter().filter(|(key, _)| key == "metadata.name");
        names.next().map_or("", |(_, name)| name.as_str())
    } else {
        &place.name
    }
    .to_owned();
    let is_namespace = kind.group.is_empty() && kind.plural == "namespaces";
    Attributes::resource(
        user,
        verb.as_str(),
        Resource {
            group: kind.group.clone(),
            version: kind.version.clone(),
            resource: kind.plural.clone(),
            subresource: place.subresource.clone(),
            namespace: if is_namespace {
                place.name.clone()
            } else {
                place.namespace.clone()
            },
            name,
            fields,
        },
    )
}

/// What a request for a resource wants that there is not, or that cannot be done to it.
pub(crate) fn unknown_attributes(user: User, place: &ResourcePath, verb: Verb) -> Attributes {
    Attributes::resource(
        user,
        verb.as_str(),
        Resource {
            group: place.group.clone(),
            version: place.version.clone(),
            resource: place.plural.clone(),
            subresource: place.subresource.clone(),
            namespace: place.namespace.clone(),
            name: place.name.clone(),
            fields: Vec::new(),
        },
    )
}

/// What a request for something that runs wants.
pub(crate) fn connect_attributes(
    user: User,
    kind: &Kind,
    place: &ResourcePath,
    verb: &'static str,
) -> Attributes {
    let mut attributes = attributes(user, kind, place, Verb::Get, "");
    verb.clone_into(&mut attributes.verb);
    attributes
}

/// What a request for a path that is no resource wants.
pub(crate) fn path_attributes(user: User, method: &Method, path: &str) -> Attributes {
    Attributes::path(user, method.as_str().to_lowercase(), path)
}

impl Observer for Guard {
    fn changed(&self, kind: &Kind, key: &str, object: Option<&Cached>) {
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        match (kind.group.as_str(), kind.plural.as_str()) {
            ("rbac.authorization.k8s.io", plural) => {
                let Some(role) = authorization::Kind::of_resource(plural) else {
                    return;
                };
                self.write(|authorizer| match object {
                    Some(object) => authorizer.rbac.put(role, &object.value()),
                    None => authorizer.rbac.remove(role, namespace, name),
                });
            }
            ("", "pods") => self.write(|authorizer| match object {
                Some(object) => authorizer.nodes.put_pod(&object.value()),
                None => authorizer.nodes.remove_pod(namespace, name),
            }),
            ("", "persistentvolumes") => self.write(|authorizer| match object {
                Some(object) => authorizer.nodes.put_persistent_volume(&object.value()),
                None => authorizer.nodes.remove_persistent_volume(name),
            }),
            ("storage.k8s.io", "volumeattachments") => self.write(|authorizer| match object {
                Some(object) => authorizer.nodes.put_volume_attachment(&object.value()),
                None => authorizer.nodes.remove_volume_attachment(name),
            }),
            _ => {}
        }
    }
}

impl Guard {
    /// Whether a user may write a role or a binding, which must not give them more than they have.
    pub(crate) fn check_escalation(
        &self,
        kind: &Kind,
        object: &serde_json::Value,
        old: Option<&serde_json::Value>,
        user: &User,
    ) -> Result<(), ApiError> {
        if kind.group != "rbac.authorization.k8s.io" {
            return Ok(());
        }
        let Some(role) = authorization::Kind::of_resource(&kind.plural) else {
            return Ok(());
        };
        self.read(|authorizer| {
            let index: &RbacIndex = &authorizer.rbac;
            let may = |attributes: &Attributes| authorizer.authorize(attributes).is_allowed();
            authorization::check_escalation(index, role, object, old, user, may)
        })
    }
}
