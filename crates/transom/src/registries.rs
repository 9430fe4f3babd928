//! The file that says where images come from: mirrors, registries without encryption, certificates and passwords.
//! It has the form that k3s gave it, so that one file serves both.
//!
//! Invariant: what is not understood is refused. A setting that is passed over silently would send a pull elsewhere.

use std::collections::BTreeMap;

use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};
use serde::Deserialize;
use transom_host::files::{Files as _, Native};
use transom_runtime::Credentials;
use transom_runtime::images::{Registries, RegistryHost};

use crate::failure::{Advice as _, Exit};

const LARGEST: u64 = 1 << 20;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    mirrors: BTreeMap<String, Mirror>,
    configs: BTreeMap<String, Host>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mirror {
    endpoint: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Host {
    auth: Option<Auth>,
    tls: Option<Tls>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Auth {
    username: String,
    password: String,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Tls {
    ca_file: Option<Utf8PathBuf>,
    insecure_skip_verify: bool,
}

/// Reads the file, and the certificates that it names.
pub(crate) fn load(path: &Utf8Path) -> anyhow::Result<Registries> {
    let read = || {
        let text = Native.read(path, LARGEST)?;
        parse(&text, |file| Ok(Native.read(file, LARGEST)?))
    };
    read()
        .with_context(|| format!("the registries in `{path}` cannot be used"))
        .exit(Exit::Configuration)
}

fn parse(
    text: &[u8],
    read: impl Fn(&Utf8Path) -> anyhow::Result<Vec<u8>>,
) -> anyhow::Result<Registries> {
    let text = std::str::from_utf8(text).context("it is not text")?;
    let file: File = serde_saphyr::from_str(text)?;
    let mut registries = Registries::default();
    for (registry, mirror) in file.mirrors {
        let mut hosts = Vec::new();
        for endpoint in &mirror.endpoint {
            let (host, is_plain) = endpoint_host(endpoint)?;
            if is_plain {
                registries.plain.insert(host.clone());
            }
            hosts.push(host);
        }
        registries.mirrors.insert(registry, hosts);
    }
    for (name, host) in file.configs {
        let tls = host.tls.unwrap_or_default();
        let known = RegistryHost {
            credentials: host.auth.map(|auth| Credentials::Password {
                user: auth.username,
                password: auth.password,
            }),
            certificates: tls.ca_file.as_deref().map(&read).transpose()?,
            any_certificate: tls.insecure_skip_verify,
        };
        registries.hosts.insert(name, known);
    }
    Ok(registries)
}

/// Host and port of a mirror, and whether it speaks without encryption.
fn endpoint_host(endpoint: &str) -> anyhow::Result<(String, bool)> {
    let (rest, is_plain) = match endpoint.split_once("://") {
        Some(("http", rest)) => (rest, true),
        Some(("https", rest)) => (rest, false),
        _ => anyhow::bail!("the endpoint `{endpoint}` does not begin with https:// or http://"),
    };
    let host = rest.trim_end_matches('/');
    let host = host.strip_suffix("/v2").unwrap_or(host);
    if host.is_empty() || host.contains(['/', '@', '?', '#']) {
        anyhow::bail!("the endpoint `{endpoint}` is more than a host and a port");
    }
    Ok((host.to_owned(), is_plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> anyhow::Result<Registries> {
        parse(text.as_bytes(), |file| {
            Ok(file.as_str().as_bytes().to_vec())
        })
    }

    #[test]
    fn mirrors_plain_registries_certificates_and_passwords_are_read() {
        let registries = parsed(
            "mirrors:
  docker.io:
    endpoint: [https://mirror.example:5000, 'http://10.0.0.1:5000/v2']
  '*': {endpoint: ['https://all.example/']}
configs:
  mirror.example:5000:
    auth: {username: me, password: secret}
    tls: {ca_file: /etc/mirror.pem}
  other.example: {tls: {insecure_skip_verify: true}}
",
        )
        .unwrap();
        assert_eq!(
            registries.mirrors["docker.io"],
            ["mirror.example:5000", "10.0.0.1:5000"]
        );
        assert_eq!(registries.mirrors["*"], ["all.example"]);
        assert_eq!(Vec::from_iter(&registries.plain), ["10.0.0.1:5000"]);
        let mirror = &registries.hosts["mirror.example:5000"];
        assert_eq!(
            mirror.certificates.as_deref(),
            Some(&b"/etc/mirror.pem"[..])
        );
        assert!(mirror.credentials.is_some() && !mirror.any_certificate);
        assert!(registries.hosts["other.example"].any_certificate);
        assert!(!format!("{registries:?}").contains("secret"));
    }

    #[test]
    fn what_would_be_passed_over_is_refused() {
        for text in [
            "mirrors: {docker.io: {endpoint: [mirror.example]}}",
            "mirrors: {docker.io: {endpoint: ['https://mirror.example/team/v2']}}",
            "mirrors: {docker.io: {endpoint: ['https://me:secret@mirror.example']}}",
            "mirrors: {docker.io: {endpoint: ['https://m.example'], rewrite: {'^a': b}}}",
            "configs: {a.example: {tls: {cert_file: /a}}}",
            "configs: {a.example: {auth: {username: me}}}",
            "mirror: {}",
            "[",
        ] {
            assert!(parsed(text).is_err(), "{text}");
        }
        assert_eq!(parsed("{}").unwrap(), Registries::default());
    }
}
