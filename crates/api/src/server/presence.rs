//! Which servers share a store: each says so under a lease, and all of them write the same endpoints of the service
//! `kubernetes`. A server that dies without a word is forgotten when its lease ends.

use std::{net::SocketAddr, time::Duration};

use transom_store::{LeaseId, Range, StoreError, Transaction, Write};

use super::bootstrap;
use crate::{Api, cache::store_fault, status::ApiError};

/// Where servers say that they are there. No resource has keys of this form.
const PREFIX: &str = "/registry/servers/";
/// Who is silent for so long is gone.
const LENGTH: Duration = Duration::from_secs(15);
const BETWEEN: Duration = Duration::from_secs(5);

/// The word of one server that it is there.
#[derive(Debug)]
pub(super) struct Presence {
    address: SocketAddr,
    lease: Option<LeaseId>,
}

impl Presence {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self {
            address,
            lease: None,
        }
    }

    /// Says that this server is there, and makes the endpoints those of all that are.
    pub(super) async fn announce(&mut self, api: &Api) -> Result<(), ApiError> {
        self.say(api).await.map_err(|error| store_fault(&error))?;
        let all = all(api).await.map_err(|error| store_fault(&error))?;
        bootstrap::ensure_endpoints(api, &all).await
    }

    async fn say(&mut self, api: &Api) -> Result<(), StoreError> {
        if let Some(lease) = self.lease {
            match api.store.renew(lease).await {
                // It ended while the store was out of reach.
                Err(StoreError::NoLease(_)) => {}
                other => return other,
            }
        }
        let lease = api.store.grant(LENGTH).await?;
        let write = Write::Put {
            key: format!("{PREFIX}{}", self.address),
            value: bytes::Bytes::new(),
            lease: Some(lease),
        };
        let transaction = Transaction {
            conditions: Vec::new(),
            writes: vec![write],
        };
        api.store.commit(transaction).await?;
        self.lease = Some(lease);
        Ok(())
    }

    /// Goes on for ever. Dropping the future ends it.
    pub(super) async fn keep(&mut self, api: &Api) {
        loop {
            tokio::time::sleep(BETWEEN).await;
            if let Err(error) = self.announce(api).await {
                tracing::warn!(%error, "could not say to other servers that this one is there; trying again");
            }
        }
    }

    /// Says that this server goes, so that nobody has to find out.
    pub(super) async fn leave(&mut self, api: &Api) -> Result<(), ApiError> {
        let Some(lease) = self.lease.take() else {
            return Ok(());
        };
        let revoked = api.store.revoke(lease).await;
        revoked.map_err(|error| store_fault(&error))?;
        let all = all(api).await.map_err(|error| store_fault(&error))?;
        // The last one leaves the endpoints as they are: whoever comes back first makes them right.
        if all.is_empty() {
            return Ok(());
        }
        bootstrap::ensure_endpoints(api, &all).await
    }
}

/// The servers that are there, in the order of their addresses.
async fn all(api: &Api) -> Result<Vec<SocketAddr>, StoreError> {
    let range = Range {
        prefix: PREFIX.to_owned(),
        ..Range::default()
    };
    let page = api.store.list(range).await?;
    let mut all: Vec<SocketAddr> = page
        .entries
        .iter()
        .filter_map(|entry| entry.key.strip_prefix(PREFIX)?.parse().ok())
        .collect();
    all.sort_unstable();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};
    use transom_store::{Memory, Store};

    use super::*;
    use crate::{Guard, Settings, storage::Codec};

    async fn open(store: &Arc<dyn Store>) -> Api {
        let (api, feed) = Api::open(
            Arc::clone(store),
            Arc::new(Codec::default()),
            Settings::default(),
            Arc::new(jiff::Timestamp::now),
            Arc::new(Guard::default()),
        )
        .await
        .unwrap();
        tokio::spawn(async move { feed.run().await });
        api
    }

    async fn endpoints(api: &Api) -> (Value, Value) {
        let kinds = api.registry.kinds();
        let read = async |group, plural| {
            let kind = kinds.resource(group, "v1", plural).unwrap();
            let found = api.find(kind, "default", "kubernetes").await.unwrap();
            found.unwrap().value()
        };
        let old = read("", "endpoints").await;
        let new = read("discovery.k8s.io", "endpointslices").await;
        (old["subsets"].clone(), new["endpoints"].clone())
    }

    fn expected(addresses: &[&str]) -> (Value, Value) {
        let old: Vec<Value> = addresses.iter().map(|ip| json!({"ip": ip})).collect();
        let new: Vec<Value> = addresses
            .iter()
            .map(|ip| json!({"addresses": [ip], "conditions": {"ready": true}}))
            .collect();
        let ports = json!([{"name": "https", "port": 6443, "protocol": "TCP"}]);
        (json!([{"addresses": old, "ports": ports}]), new.into())
    }

    #[tokio::test]
    async fn the_endpoints_are_those_of_all_servers_that_are_there() {
        let store: Arc<dyn Store> = Arc::new(Memory::new());
        let (first, second) = (open(&store).await, open(&store).await);
        let mut one = Presence::new("10.0.0.1:6443".parse().unwrap());
        let mut two = Presence::new("10.0.0.2:6443".parse().unwrap());
        bootstrap::ensure(&first, "10.0.0.1:6443".parse().unwrap(), Some(&mut one))
            .await
            .unwrap();
        assert_eq!(endpoints(&first).await, expected(&["10.0.0.1"]));
        bootstrap::ensure(&second, "10.0.0.2:6443".parse().unwrap(), Some(&mut two))
            .await
            .unwrap();
        let both = expected(&["10.0.0.1", "10.0.0.2"]);
        assert_eq!(endpoints(&first).await, both);

        // One whose lease ended says anew that it is there.
        let lease = one.lease.unwrap();
        store.revoke(lease).await.unwrap();
        two.announce(&second).await.unwrap();
        assert_eq!(endpoints(&first).await, expected(&["10.0.0.2"]));
        one.announce(&first).await.unwrap();
        assert_eq!(endpoints(&second).await, both);

        two.leave(&second).await.unwrap();
        assert_eq!(endpoints(&first).await, expected(&["10.0.0.1"]));
        one.leave(&first).await.unwrap();
        assert_eq!(endpoints(&first).await, expected(&["10.0.0.1"]));
    }
}
