//! The names and addresses that the serving certificate is good for.
//!
//! Two sets of names are equal exactly if a certificate for one serves the other, so a change is seen.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use rcgen::SanType;
use x509_parser::extensions::GeneralName;

use super::PkiError;

/// The names under which pods and people know every API server.
const EVERYWHERE: [&str; 5] = [
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// The service of the API server gets the first address of the services' network.
pub const FIRST_SERVICE_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 43, 0, 1));

/// What clients may call this server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServingNames {
    names: BTreeSet<String>,
    addresses: BTreeSet<IpAddr>,
}

impl ServingNames {
    /// The names of every API server: those of its service, and the loopback.
    pub fn standard() -> Self {
        Self {
            names: EVERYWHERE.map(str::to_owned).into(),
            addresses: [
                IpAddr::V4(Ipv4Addr::LOCALHOST),
                IpAddr::V6(Ipv6Addr::LOCALHOST),
                FIRST_SERVICE_ADDRESS,
            ]
            .into(),
        }
    }

    /// Adds a name, or an address written as text. Names are compared without regard to case.
    #[must_use]
    pub fn with(mut self, name_or_address: &str) -> Self {
        match name_or_address.parse() {
            Ok(address) => self.addresses.insert(address),
            Err(_) => self
                .names
                .insert(name_or_address.trim_end_matches('.').to_ascii_lowercase()),
        };
        self
    }

    /// Whether a certificate can be made for this name, or this address written as text.
    pub fn accepts(name_or_address: &str) -> bool {
        name_or_address.parse::<IpAddr>().is_ok()
            || is_host_name(name_or_address.trim_end_matches('.'))
    }

    #[must_use]
    pub fn with_address(mut self, address: IpAddr) -> Self {
        self.addresses.insert(address);
        self
    }

    /// As they stand in a certificate.
    pub(super) fn to_alternatives(&self) -> Result<Vec<SanType>, PkiError> {
        let names = self.names.iter().map(|name| {
            let refused = || PkiError::Name { name: name.clone() };
            let text = is_host_name(name).then(|| name.as_str().try_into().ok());
            text.flatten().map(SanType::DnsName).ok_or_else(refused)
        });
        let addresses = self
            .addresses
            .iter()
            .map(|address| Ok(SanType::IpAddress(*address)));
        names.chain(addresses).collect()
    }

    /// What a certificate says; other sorts of names are of no use to a server and are left out.
    pub(super) fn of_certificate(alternatives: &[GeneralName<'_>]) -> Self {
        let mut found = Self::default();
        for alternative in alternatives {
            match alternative {
                GeneralName::DNSName(name) => {
                    found.names.insert((*name).to_owned());
                }
                GeneralName::IPAddress(bytes) => {
                    let address = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
                    let address =
                        address.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from));
                    found.addresses.extend(address);
                }
                _ => {}
            }
        }
        found
    }
}

/// What programs accept as a name in a certificate. One that they do not would spoil the whole certificate.
fn is_host_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        !label.is_empty() && label.len() <= 63 && label.bytes().all(is_plain)
    };
    let rest = name.strip_prefix("*.").unwrap_or(name);
    name.len() <= 253 && rest.split('.').all(is_label)
}
