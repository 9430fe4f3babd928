//! One bridge per node with a subnet of its own: pods of the node reach each other and, masqueraded, what the
//! node reaches. The network of a whole cluster is another matter.
//!
//! Invariant: every link is ours by its name, every rule by its table; nothing else is touched.

use std::net::IpAddr;
use std::os::fd::AsFd;
use std::process::Stdio;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use tokio::io::AsyncWriteExt;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::forward;
use super::leases::{Lease, Leases, Subnet};
use super::netlink::Links;
use super::{Network, inside};
use crate::images::Digest;
use crate::{Pending, PodSpec, RuntimeError};

/// The name of a link has 15 letters at most.
const LONGEST_NAME: usize = 10;
/// A table is replaced in milliseconds, unless the kernel is busy with the tables of others.
const LONGEST_RUN: Duration = Duration::from_secs(30);

/// Pods on a bridge of the node.
#[derive(Debug)]
pub struct Bridge {
    name: String,
    subnet: Subnet,
    leases: Mutex<Leases>,
}

impl Bridge {
    /// `name` is that of the bridge, and the mark of all that belongs to it. `state` is a file.
    pub fn new(name: &str, subnet: &str, state: &Utf8Path) -> Result<Self, RuntimeError> {
        let is_plain = name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        if name.is_empty() || name.len() > LONGEST_NAME || !is_plain {
            return Err(RuntimeError::Invalid(format!(
                "{name:?} cannot be the name of a bridge"
            )));
        }
        let subnet = Subnet::parse(subnet)?;
        Ok(Self {
            name: name.to_owned(),
            subnet,
            leases: Mutex::new(Leases::open(Utf8PathBuf::from(state), subnet)?),
        })
    }

    /// The node's end of a pod's link.
    fn link_of(&self, pod: &str) -> String {
        format!(
            "{}{}",
            self.prefix(),
            &Digest::of(pod.as_bytes()).hex()[..8]
        )
    }

    /// Short, so that a name has room for eight digits.
    fn prefix(&self) -> String {
        format!("v{}-", &Digest::of(self.name.as_bytes()).hex()[..4])
    }

    fn table(&self) -> String {
        format!("transom_{}", self.name)
    }

    async fn ensure_bridge(&self) -> Result<(), RuntimeError> {
        let (name, subnet) = (self.name.clone(), self.subnet);
        on_links("make the bridge of the node", move |links| {
            links.add_bridge(&name, "transom")?;
            links.add_address(&name, IpAddr::V4(subnet.gateway()), subnet.prefix)?;
            links.set_up(&name)?;
            // Who connects pods with the world forwards.
            fs_err::write("/proc/sys/net/ipv4/ip_forward", "1")
        })
        .await
    }

    /// Puts the rules for all pods in place at once. Without nft pods reach each other only.
    async fn apply_rules(&self, leases: &Leases) -> Result<(), RuntimeError> {
        let leases: Vec<&Lease> = leases.all().values().collect();
        let text = forward::render(&self.table(), &self.name, &self.subnet.to_string(), &leases);
        let has_ports = leases.iter().any(|lease| !lease.ports.is_empty());
        match run_nft(&text).await {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !has_ports => {
                tracing::warn!(
                    "nft is not installed: pods reach each other, and nothing beyond the node"
                );
                Ok(())
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(RuntimeError::NotSupported(
                    "ports of the node cannot lead into pods without nft: install nftables"
                        .to_owned(),
                ))
            }
            // Ports of the node that only the node itself may reach lead into pods, too. Never without the rules:
            // one of them keeps pods from the node's loopback.
            applied => applied
                .and_then(|()| fs_err::write(self.localnet_setting(), "1"))
                .map_err(|error| RuntimeError::io("apply the rules of the pods' network", error)),
        }
    }

    fn localnet_setting(&self) -> String {
        format!("/proc/sys/net/ipv4/conf/{}/route_localnet", self.name)
    }

    async fn remove_link(&self, link: String) -> Result<(), RuntimeError> {
        on_links("remove the link of a pod", move |links| links.remove(&link)).await
    }
}

impl Network for Bridge {
    fn attach<'a>(
        &'a self,
        pod: &'a str,
        spec: &'a PodSpec,
        namespace: &'a Utf8Path,
    ) -> Pending<'a, Vec<IpAddr>> {
        Box::pin(async move {
            forward::check(&spec.ports)?;
            let mut leases = self.leases.lock().await;
            self.ensure_bridge().await?;
            let address = leases.take(pod, &spec.ports)?;
            let (link, bridge, opened) =
                (self.link_of(pod), self.name.clone(), namespace.to_owned());
            on_links("connect a pod", move |links| {
                let namespace = fs_err::File::open(&opened)?;
                links.remove(&link)?;
                links.add_pair(&link, &bridge, "eth0", namespace.file().as_fd())
            })
            .await?;
            let (prefix, gateway) = (self.subnet.prefix, self.subnet.gateway());
            inside(namespace.to_owned(), move || {
                let mut links = Links::open()?;
                links.set_up("lo")?;
                links.add_address("eth0", IpAddr::V4(address), prefix)?;
                links.set_up("eth0")?;
                links.add_default_route(IpAddr::V4(gateway))
            })
            .await?;
            self.apply_rules(&leases).await?;
            Ok(vec![IpAddr::V4(address)])
        })
    }

    fn detach<'a>(&'a self, pod: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            let mut leases = self.leases.lock().await;
            self.remove_link(self.link_of(pod)).await?;
            if leases.give_back(pod)? {
                self.apply_rules(&leases).await?;
            }
            Ok(())
        })
    }

    fn reconcile<'a>(&'a self, pods: &'a [String]) -> Pending<'a, ()> {
        Box::pin(async move {
            let mut leases = self.leases.lock().await;
            let gone: Vec<String> = leases
                .all()
                .keys()
                .filter(|pod| !pods.contains(pod))
                .cloned()
                .collect();
            for pod in gone {
                leases.give_back(&pod)?;
            }
            let kept: Vec<String> = leases.all().keys().map(|pod| self.link_of(pod)).collect();
            let prefix = self.prefix();
            on_links("remove links that belong to no pod", move |links| {
                for name in links.names()? {
                    if name.starts_with(&prefix) && !kept.contains(&name) {
                        links.remove(&name)?;
                    }
                }
                Ok(())
            })
            .await?;
            if leases.all().is_empty() {
                return self.remove().await;
            }
            self.ensure_bridge().await?;
            self.apply_rules(&leases).await
        })
    }
}

impl Bridge {
    /// Takes bridge and rules away. They come back with the next pod.
    pub async fn remove(&self) -> Result<(), RuntimeError> {
        let name = self.name.clone();
        on_links("remove the bridge of the node", move |links| {
            links.remove(&name)
        })
        .await?;
        match run_nft(&forward::render_removal(&self.table())).await {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed
                .map_err(|error| RuntimeError::io("remove the rules of the pods' network", error)),
        }
    }
}

async fn on_links<T: Send + 'static>(
    action: &'static str,
    work: impl FnOnce(&mut Links) -> std::io::Result<T> + Send + 'static,
) -> Result<T, RuntimeError> {
    tokio::task::spawn_blocking(move || work(&mut Links::open()?))
        .await
        .map_err(|error| RuntimeError::Other(error.to_string()))?
        .map_err(|error| RuntimeError::io(action, error))
}

async fn run_nft(text: &str) -> std::io::Result<()> {
    let mut child = tokio::process::Command::new("nft")
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(text.as_bytes()).await?;
    }
    let ended = timeout(LONGEST_RUN, child.wait_with_output()).await;
    let output = ended.map_err(|_| {
        std::io::Error::new(
            std::io::ErrorKind::TimedOut,
            format!("nft does not end, not even after {LONGEST_RUN:?}"),
        )
    })??;
    if output.status.success() {
        Ok(())
    } else {
        Err(std::io::Error::other(format!(
            "nft: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )))
    }
}
