//! Which pod has which address of the node's subnet, kept on disk. Invariant: an address belongs to at most
//! one pod, also across a crash: it is written down before it is used.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use super::super::records;
use crate::{PortMap, RuntimeError};

/// A subnet of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subnet {
    first: u32,
    pub(super) prefix: u8,
}

impl Subnet {
    /// As `10.244.0.0/24`.
    pub(super) fn parse(text: &str) -> Result<Self, RuntimeError> {
        let wrong = || RuntimeError::Invalid(format!("{text:?} is no subnet with room for pods"));
        let (address, prefix) = text.split_once('/').ok_or_else(wrong)?;
        let address: Ipv4Addr = address.parse().map_err(|_| wrong())?;
        let prefix: u8 = prefix.parse().map_err(|_| wrong())?;
        if !(8..=29).contains(&prefix) {
            return Err(wrong());
        }
        Ok(Self {
            first: u32::from(address) & (u32::MAX << (32 - prefix)),
            prefix,
        })
    }

    /// The node's own address: the first one.
    pub(super) fn gateway(self) -> Ipv4Addr {
        Ipv4Addr::from(self.first + 1)
    }

    fn last(self) -> u32 {
        self.first + (u32::MAX >> self.prefix)
    }
}

impl std::fmt::Display for Subnet {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", Ipv4Addr::from(self.first), self.prefix)
    }
}

/// What a pod has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lease {
    pub(super) address: Ipv4Addr,
    pub(super) ports: Vec<PortMap>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Book {
    leases: BTreeMap<String, Lease>,
    /// The address given last: a new pod does not at once get one that somebody may still speak to.
    last: u32,
}

#[derive(Debug)]
pub(super) struct Leases {
    path: Utf8PathBuf,
    subnet: Subnet,
    book: Book,
}

impl Leases {
    pub(super) fn open(path: Utf8PathBuf, subnet: Subnet) -> Result<Self, RuntimeError> {
        let book = records::read(&path)?.unwrap_or_default();
        Ok(Self { path, subnet, book })
    }

    pub(super) fn all(&self) -> &BTreeMap<String, Lease> {
        &self.book.leases
    }

    /// The address of a pod, the same whenever it is asked for.
    pub(super) fn take(&mut self, pod: &str, ports: &[PortMap]) -> Result<Ipv4Addr, RuntimeError> {
        if let Some(lease) = self.book.leases.get(pod) {
            return Ok(lease.address);
        }
        let (low, high) = (self.subnet.first + 2, self.subnet.last() - 1);
        let is_free = |number: &u32| {
            !self
                .book
                .leases
                .values()
                .any(|lease| u32::from(lease.address) == *number)
        };
        let start = if (low..high).contains(&self.book.last) {
            self.book.last + 1
        } else {
            low
        };
        let number = (start..=high)
            .chain(low..start)
            .find(is_free)
            .ok_or_else(|| {
                RuntimeError::io(
                    "give a pod an address",
                    io::Error::other(format!("all of {} are taken", self.subnet)),
                )
            })?;
        let address = Ipv4Addr::from(number);
        let lease = Lease {
            address,
            ports: ports.to_vec(),
        };
        self.book.leases.insert(pod.to_owned(), lease);
        self.book.last = number;
        self.save()?;
        Ok(address)
    }

    pub(super) fn give_back(&mut self, pod: &str) -> Result<bool, RuntimeError> {
        let had = self.book.leases.remove(pod).is_some();
        if had {
            self.save()?;
        }
        Ok(had)
    }

    fn save(&self) -> Result<(), RuntimeError> {
        records::write(&self.path, &self.book)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leases(folder: &tempfile::TempDir, subnet: &str) -> Leases {
        let path = Utf8PathBuf::from_path_buf(folder.path().join("leases.json")).expect("a path");
        Leases::open(path, Subnet::parse(subnet).expect("a subnet")).expect("leases")
    }

    #[test]
    fn addresses_are_given_once_survive_and_come_back_last() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut first = leases(&folder, "10.1.2.7/29");
        let given: Vec<Ipv4Addr> = ["a", "b"]
            .iter()
            .map(|pod| first.take(pod, &[]).expect("an address"))
            .collect();
        assert_eq!(
            given,
            [Ipv4Addr::new(10, 1, 2, 2), Ipv4Addr::new(10, 1, 2, 3)]
        );
        let mut again = leases(&folder, "10.1.2.0/29");
        assert_eq!(again.take("b", &[]).expect("an address"), given[1]);
        assert!(again.give_back("a").expect("given back"));
        assert!(!again.give_back("a").expect("nothing to give back"));
        assert_eq!(
            again.take("c", &[]).expect("an address"),
            Ipv4Addr::new(10, 1, 2, 4)
        );
        for pod in ["d", "e", "f"] {
            again.take(pod, &[]).expect("an address");
        }
        assert!(
            again.take("g", &[]).is_err(),
            "six addresses, one is the node's"
        );
    }

    #[test]
    fn a_subnet_without_room_is_refused() {
        for text in [
            "",
            "10.0.0.0",
            "10.0.0.0/31",
            "10.0.0.0/2",
            "x/24",
            "fd00::/64",
        ] {
            assert!(Subnet::parse(text).is_err(), "{text}");
        }
        assert_eq!(
            Subnet::parse("10.0.0.9/24").expect("a subnet").gateway(),
            Ipv4Addr::new(10, 0, 0, 1)
        );
    }
}
