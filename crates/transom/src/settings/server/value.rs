//! Values of the server's settings as people write them. Invariant: what is accepted here can be used; what is
//! not is answered with what was expected.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::str::FromStr;

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use transom_api::access::pki::ServingNames;
use transom_api::server::{EtcdOptions, StoreChoice};

/// What the keys of all clusters in an etcd begin with, unless the address says it.
const PREFIX: &str = "transom";

/// An address with a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Listen(pub SocketAddr);

impl Default for Listen {
    fn default() -> Self {
        Self((Ipv4Addr::UNSPECIFIED, 6443).into())
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let address = text.parse().map(Self);
        address.map_err(|_| "expected an address and a port, such as 0.0.0.0:6443".to_owned())
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// A name, or an address without a port, that can stand in a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct HostName(String);

impl HostName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for HostName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if ServingNames::accepts(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(
                "expected a host name or an address without a port, such as api.example.org"
                    .to_owned(),
            )
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Where objects are kept.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct StoreName {
    text: String,
    choice: StoreChoice,
}

impl StoreName {
    /// The store, with an etcd that is not encrypted.
    pub fn choice(&self) -> StoreChoice {
        self.choice.clone()
    }
}

impl Default for StoreName {
    fn default() -> Self {
        Self {
            text: "local".to_owned(),
            choice: StoreChoice::Local,
        }
    }
}

impl PartialEq for StoreName {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for StoreName {}

impl FromStr for StoreName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let choice = match text {
            "local" => Some(StoreChoice::Local),
            "memory" => Some(StoreChoice::Memory),
            text => etcd(text).map(StoreChoice::Etcd),
        };
        let choice =
            choice.ok_or_else(|| "expected `local`, `memory` or etcd://HOST:PORT".to_owned())?;
        Ok(Self {
            text: text.to_owned(),
            choice,
        })
    }
}

impl fmt::Display for StoreName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

fn etcd(text: &str) -> Option<EtcdOptions> {
    let place = text.strip_prefix("etcd://")?;
    let (hosts, prefix) = place.split_once('/').unwrap_or((place, PREFIX));
    let endpoints = hosts.split(',').map(|server| {
        let (host, port) = server.rsplit_once(':')?;
        // Anything else than a host would be taken along in silence: a password, a query.
        let is_plain = !host.is_empty() && !host.contains(['@', '?', '#', '\\']);
        let is_port = port.parse::<u16>().is_ok_and(|port| port != 0);
        (is_plain && is_port).then(|| format!("http://{server}").parse().ok())?
    });
    let endpoints = endpoints.collect::<Option<Vec<_>>>()?;
    let prefix = match prefix.trim_matches('/') {
        "" => PREFIX,
        prefix => prefix,
    };
    Some(EtcdOptions {
        endpoints,
        prefix: format!("/{prefix}"),
        tls: None,
    })
}

macro_rules! text_in_files {
    ($($name:ty),*) => {$(
        impl TryFrom<String> for $name {
            type Error = String;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.to_string()
            }
        }
    )*};
}

text_in_files!(Listen, HostName, StoreName, super::scheduler::SchedulerName);

/// Names with commas between them, as a variable has them.
pub(super) fn host_names(text: &str) -> Result<Vec<HostName>, String> {
    text.split(',').map(|name| name.trim().parse()).collect()
}

/// A number of things of which there must be one.
pub fn at_least_one(text: &str) -> Result<NonZeroU32, String> {
    text.parse().map_err(|_| expected_number())
}

pub(super) fn expected_number() -> String {
    format!("expected a number from 1 to {}", u32::MAX)
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "one shape for all kinds of variables"
)]
pub(super) fn some_path(text: &str) -> Result<Option<Utf8PathBuf>, String> {
    Ok(Some(text.into()))
}
