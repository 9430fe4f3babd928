//! What every cluster has: made at the start if it is not there, mended where a newer version wants more.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    sync::Arc,
};

use bytes::Bytes;
use futures::future::try_join_all;
use serde_json::{Value, json};

use super::presence::Presence;
use crate::{
    Api,
    access::{
        authentication::{User, group},
        authorization::policy::{Reconciled, bootstrap_policy, reconcile},
    },
    http::{body::Decoded, negotiate::Form, options::Options, path::ResourcePath},
    object,
    registry::Kind,
    status::ApiError,
    verbs::{Call, create, delete, update},
};

/// Namespaces that cannot be missing.
const NAMESPACES: &[&str] = &["default", "kube-system", "kube-public", "kube-node-lease"];
/// The address of the service `kubernetes`: the first of the usual service subnet.
const SERVICE: &str = "10.43.0.1";

/// Makes what is missing. Each wave needs the one before. A server that shares its store says that it is there.
pub(super) async fn ensure(
    api: &Api,
    address: SocketAddr,
    presence: Option<&mut Presence>,
) -> Result<(), ApiError> {
    let namespaces = NAMESPACES
        .iter()
        .map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    try_join_all(namespaces.map(|value| ensure_one(api, value))).await?;
    let policy = bootstrap_policy()
        .into_iter()
        .map(|wanted| ensure_policy(api, wanted));
    let classes = priority_classes().into_iter().chain([service(address)]);
    let objects = classes.map(|value| ensure_one(api, value));
    futures::future::try_join(try_join_all(policy), try_join_all(objects)).await?;
    match presence {
        Some(presence) => presence.announce(api).await?,
        None => {
            let reached = reached(address);
            ensure_endpoints(api, reached.as_slice()).await?;
        }
    }
    // Roles are looked up in the caches: the first request must find them there.
    api.catch_up().await
}

/// Makes the endpoints of the service `kubernetes` those of the servers. Without any they stay as they are.
pub(super) async fn ensure_endpoints(api: &Api, servers: &[SocketAddr]) -> Result<(), ApiError> {
    let Some(first) = servers.first() else {
        return Ok(());
    };
    let endpoints = endpoints(*first, servers);
    try_join_all(endpoints.map(|value| ensure_same(api, value))).await?;
    Ok(())
}

/// Where pods reach a server that listens at an address. None if the machine has only itself.
pub(super) fn reached(address: SocketAddr) -> Option<SocketAddr> {
    let reached = advertised(address.ip(), outward_address)?;
    Some(SocketAddr::new(reached, address.port()))
}

/// The address at which pods reach a server that listens at another. None if the machine has only itself.
fn advertised(listening: IpAddr, outward: impl Fn(IpAddr) -> Option<IpAddr>) -> Option<IpAddr> {
    if listening.is_unspecified() || listening.is_loopback() {
        outward(listening)
    } else {
        Some(listening)
    }
}

/// The machine's own address on the way to elsewhere. Nothing is sent to find it.
fn outward_address(like: IpAddr) -> Option<IpAddr> {
    // Addresses that belong to nobody: the way there is the way to everybody.
    let (from, elsewhere): (IpAddr, IpAddr) = match like {
        IpAddr::V4(_) => (
            Ipv4Addr::UNSPECIFIED.into(),
            Ipv4Addr::new(192, 0, 2, 1).into(),
        ),
        IpAddr::V6(_) => (
            Ipv6Addr::UNSPECIFIED.into(),
            Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
        ),
    };
    let socket = UdpSocket::bind((from, 0)).ok()?;
    socket.connect((elsewhere, 9)).ok()?;
    let own = socket.local_addr().ok()?.ip();
    crate::proxy::is_global_unicast(own).then_some(own)
}

/// How pods of the cluster itself stand above all others.
fn priority_classes() -> Vec<Value> {
    [
        ("system-cluster-critical", 2_000_000_000),
        ("system-node-critical", 2_000_001_000),
    ]
    .into_iter()
    .map(|(name, value)| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": name}, "value": value,
            "description": "Used for pods that the cluster cannot do without.",
        })
    })
    .collect()
}

/// How pods find the API.
fn service(address: SocketAddr) -> Value {
    let labels = json!({"component": "apiserver", "provider": "kubernetes"});
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
        "spec": {
            "clusterIP": SERVICE,
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": address.port()}],
        },
    })
}

/// Where the service leads, in the old form and in the new one. Both have one port and one sort of addresses: those
/// of the first server, which all servers agree on.
fn endpoints(first: SocketAddr, servers: &[SocketAddr]) -> [Value; 2] {
    let is_like_first =
        |server: &&SocketAddr| server.port() == first.port() && server.is_ipv4() == first.is_ipv4();
    let servers: Vec<String> = servers
        .iter()
        .filter(is_like_first)
        .map(|server| server.ip().to_string())
        .collect();
    let addresses: Vec<Value> = servers.iter().map(|ip| json!({"ip": ip})).collect();
    let ready: Vec<Value> = servers
        .iter()
        .map(|ip| json!({"addresses": [ip], "conditions": {"ready": true}}))
        .collect();
    let ports = json!([{"name": "https", "port": first.port(), "protocol": "TCP"}]);
    [
        json!({
            "apiVersion": "v1", "kind": "Endpoints",
            "metadata": {"name": "kubernetes", "namespace": "default",
                "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
            "subsets": [{"addresses": addresses, "ports": ports}],
        }),
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": "kubernetes", "namespace": "default",
                "labels": {"kubernetes.io/service-name": "kubernetes"}},
            "addressType": if first.is_ipv4() { "IPv4" } else { "IPv6" },
            "endpoints": ready,
            "ports": ports,
        }),
    ]
}

/// Makes an object, or makes it what it should be: this machine may have had another address before.
async fn ensure_same(api: &Api, wanted: Value) -> Result<(), ApiError> {
    let mut call = internal_call(&kind_of(api, &wanted)?, &wanted);
    let name = object::name(&wanted).to_owned();
    let found = api.find(&call.kind, &call.path.namespace, &name).await?;
    let Some(found) = found else {
        return ensure_one(api, wanted).await;
    };
    let known = found.value();
    let has_kind = known["addressType"] == wanted["addressType"];
    let is_same = ["subsets", "endpoints", "ports"]
        .iter()
        .all(|field| known.get(*field) == wanted.get(*field));
    if is_same {
        return Ok(());
    }
    call.path.name = name;
    if has_kind {
        update::replace(api, &call, wanted).await.map(|_| ())
    } else {
        // A slice keeps the sort of its addresses for life.
        delete::delete(api, &call).await?;
        ensure_one(api, wanted).await
    }
}

fn kind_of(api: &Api, value: &Value) -> Result<Arc<Kind>, ApiError> {
    let text = |field: &str| value[field].as_str().unwrap_or_default();
    let kinds = api.registry.kinds();
    kinds
        .object(text("apiVersion"), text("kind"))
        .cloned()
        .ok_or_else(|| ApiError::internal(format!("no kind for {value}")))
}

async fn ensure_one(api: &Api, value: Value) -> Result<(), ApiError> {
    let call = internal_call(&kind_of(api, &value)?, &value);
    if api
        .find(&call.kind, &call.path.namespace, object::name(&value))
        .await?
        .is_some()
    {
        return Ok(());
    }
    let decoded = Decoded {
        value,
        warnings: Vec::new(),
    };
    match create::create_value(api, &call, decoded).await {
        // Another server was faster.
        Err(error) if error.reason == "AlreadyExists" => Ok(()),
        other => other.map(|_| ()),
    }
}

async fn ensure_policy(api: &Api, wanted: Value) -> Result<(), ApiError> {
    let mut call = internal_call(&kind_of(api, &wanted)?, &wanted);
    let found = api
        .find(&call.kind, &call.path.namespace, object::name(&wanted))
        .await?;
    let existing = found.map(|cached| {
        let mut value = cached.value();
        crate::pipeline::from_storage(&call.kind, &mut value);
        value
    });
    match reconcile(existing.as_ref(), &wanted) {
        Reconciled::Keep | Reconciled::Protected => Ok(()),
        Reconciled::Create => ensure_one(api, wanted).await,
        Reconciled::Update(value) => {
            object::name(&wanted).clone_into(&mut call.path.name);
            update::replace(api, &call, value).await.map(|_| ())
        }
        Reconciled::Replace => {
            object::name(&wanted).clone_into(&mut call.path.name);
            delete::delete(api, &call).await?;
            ensure_one(api, wanted).await
        }
    }
}

/// A call of the server to itself.
fn internal_call(kind: &Arc<Kind>, value: &Value) -> Call {
    Call {
        kind: Arc::clone(kind),
        path: ResourcePath {
            group: kind.group.clone(),
            version: kind.version.clone(),
            plural: kind.plural.clone(),
            namespace: object::namespace(value).to_owned(),
            ..ResourcePath::default()
        },
        options: Options {
            field_manager: "transom".to_owned(),
            ..Options::default()
        },
        form: Form::JSON,
        user: User::authenticated("system:apiserver", vec![group::MASTERS.to_owned()]),
        user_agent: "transom".to_owned(),
        content_type: String::new(),
        body: Bytes::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_listens_everywhere_is_reached_from_outside() {
        let outside: IpAddr = Ipv4Addr::new(10, 0, 0, 7).into();
        let address = |text: &str| advertised(text.parse().unwrap(), |_| Some(outside));
        assert_eq!(address("0.0.0.0"), Some(outside));
        assert_eq!(address("127.0.0.1"), Some(outside));
        assert_eq!(address("192.168.1.5"), "192.168.1.5".parse().ok());
        let alone = advertised(Ipv4Addr::UNSPECIFIED.into(), |_| None);
        assert_eq!(alone, None);
        let own = outward_address(Ipv4Addr::UNSPECIFIED.into());
        assert!(own.is_none_or(|own| !own.is_loopback()), "{own:?}");
    }
}
