//! The settings of `transom server`. Invariant: each value is checked where it is read, so that a mistake is
//! named with its flag, its variable or its line; what belongs together is checked when all of it is known.

mod scheduler;
mod value;

use std::num::NonZeroU32;

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use transom_api::server::{EtcdIdentity, EtcdTls, StoreChoice};

pub use scheduler::SchedulerName;
pub use value::{HostName, Listen, StoreName, at_least_one};

use super::{DESCRIPTIONS, Description, Setting, SettingsError, Source, Sources};
use crate::environment;
use crate::failure::Exit;

/// More than any cluster of ours needs, and few enough for the memory of a small machine.
const MAX_CONNECTIONS: NonZeroU32 = NonZeroU32::new(10_000).unwrap();

/// The section `server` of the configuration file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServerConfig {
    /// The folder of the state, the certificates and the administrator's kubeconfig
    #[serde(default, deserialize_with = "some_path")]
    #[schemars(with = "Option<String>")]
    pub data_dir: Option<Utf8PathBuf>,
    /// Address and port of the API; port 0 lets the system choose
    pub listen: Option<Listen>,
    /// Names and addresses, beside the usual ones, under which clients reach the server
    pub names: Option<Vec<HostName>>,
    /// Where objects are kept: `local`, `memory` or `etcd://HOST:PORT[,HOST:PORT…][/PREFIX]`
    pub store: Option<StoreName>,
    /// The files of the connection to etcd
    pub etcd: Option<EtcdConfig>,
    /// How many connections are open at once; others wait
    #[serde(default, deserialize_with = "some_number")]
    pub max_connections: Option<NonZeroU32>,
    /// A file with mirrors, passwords and certificates of registries, which are asked what images are for
    #[serde(default, deserialize_with = "some_path")]
    #[schemars(with = "Option<String>")]
    pub registries: Option<Utf8PathBuf>,
    /// Schedulers, beside the usual one, that pods can name: `NAME[,KEY=VALUE…]`
    pub schedulers: Option<Vec<SchedulerName>>,
}

/// The files of the connection to etcd, as PEM.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EtcdConfig {
    /// Who signed the certificates of etcd's servers; with it the connection is encrypted
    #[serde(default, deserialize_with = "some_path")]
    #[schemars(with = "Option<String>")]
    pub ca: Option<Utf8PathBuf>,
    /// The certificate that the server shows to etcd
    #[serde(default, deserialize_with = "some_path")]
    #[schemars(with = "Option<String>")]
    pub cert: Option<Utf8PathBuf>,
    /// The key of that certificate
    #[serde(default, deserialize_with = "some_path")]
    #[schemars(with = "Option<String>")]
    pub key: Option<Utf8PathBuf>,
}

/// How the server is to run, decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    pub data_dir: Setting<Utf8PathBuf>,
    pub listen: Setting<Listen>,
    pub names: Setting<Vec<HostName>>,
    pub store: Setting<StoreName>,
    pub etcd_ca: Setting<Option<Utf8PathBuf>>,
    pub etcd_cert: Setting<Option<Utf8PathBuf>>,
    pub etcd_key: Setting<Option<Utf8PathBuf>>,
    pub max_connections: Setting<NonZeroU32>,
    pub registries: Setting<Option<Utf8PathBuf>>,
    pub schedulers: Setting<Vec<SchedulerName>>,
}

/// Settings that are right alone and wrong together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    #[error("the setting {given} ({source_of_given}) needs {missing}")]
    Incomplete {
        given: &'static str,
        source_of_given: Source,
        missing: &'static str,
    },
    #[error("the setting {given} ({source_of_given}) is for etcd, and no store was chosen")]
    NoStore {
        given: &'static str,
        source_of_given: Source,
    },
}

impl ServerError {
    /// The way forward.
    pub fn hint(&self) -> String {
        match self {
            Self::Incomplete { missing, .. } => format!("set it with {}", ways(missing)),
            Self::NoStore { .. } => {
                format!("set etcd://HOST:PORT with {}", ways("server.store"))
            }
        }
    }

    /// The exit code: that of whoever said the first half.
    pub fn exit(&self) -> Exit {
        let (Self::Incomplete {
            source_of_given, ..
        }
        | Self::NoStore {
            source_of_given, ..
        }) = self;
        match source_of_given {
            Source::Flag { .. } => Exit::Usage,
            Source::Variable { .. } | Source::File { .. } | Source::Default => Exit::Configuration,
        }
    }
}

impl ServerSettings {
    /// Decides between variables, file and defaults; flags come later, with the command that has them.
    pub(super) fn resolve(
        from: &Sources<'_>,
        file: ServerConfig,
        usual_data: Utf8PathBuf,
    ) -> Result<Self, SettingsError> {
        let etcd = file.etcd.unwrap_or_default();
        let some_file = |variable, file: Option<Utf8PathBuf>| {
            from.choose((None, ""), (variable, value::some_path), file.map(Some))
        };
        Ok(Self {
            data_dir: from.choose_or(
                (None, ""),
                (&environment::SERVER_DATA_DIR, super::path),
                file.data_dir,
                usual_data,
            )?,
            listen: from.choose(
                (None, ""),
                (&environment::SERVER_LISTEN, str::parse),
                file.listen,
            )?,
            names: from.choose(
                (None, ""),
                (&environment::SERVER_NAMES, value::host_names),
                file.names,
            )?,
            store: from.choose(
                (None, ""),
                (&environment::SERVER_STORE, str::parse),
                file.store,
            )?,
            etcd_ca: some_file(&environment::SERVER_ETCD_CA, etcd.ca)?,
            etcd_cert: some_file(&environment::SERVER_ETCD_CERT, etcd.cert)?,
            etcd_key: some_file(&environment::SERVER_ETCD_KEY, etcd.key)?,
            max_connections: from.choose_or(
                (None, ""),
                (&environment::SERVER_MAX_CONNECTIONS, at_least_one),
                file.max_connections,
                MAX_CONNECTIONS,
            )?,
            registries: some_file(&environment::SERVER_REGISTRIES, file.registries)?,
            schedulers: from.choose(
                (None, ""),
                (&environment::SERVER_SCHEDULERS, scheduler::schedulers),
                file.schedulers,
            )?,
        })
    }

    /// The store, with the files that its connection needs.
    pub fn store_choice(&self) -> Result<StoreChoice, ServerError> {
        let files = [
            ("server.etcd.ca", &self.etcd_ca),
            ("server.etcd.cert", &self.etcd_cert),
            ("server.etcd.key", &self.etcd_key),
        ];
        let [authority, certificate, key] = files;
        for (given, missing) in [
            (certificate, key),
            (key, certificate),
            (certificate, authority),
        ] {
            if given.1.value.is_some() && missing.1.value.is_none() {
                return Err(ServerError::Incomplete {
                    given: given.0,
                    source_of_given: given.1.source.clone(),
                    missing: missing.0,
                });
            }
        }
        let mut choice = self.store.value.choice();
        let given = files.iter().find(|(_, setting)| setting.value.is_some());
        match (&mut choice, given) {
            (StoreChoice::Etcd(options), _) => {
                let own = self
                    .etcd_cert
                    .value
                    .clone()
                    .zip(self.etcd_key.value.clone());
                options.tls = self.etcd_ca.value.clone().map(|authority| EtcdTls {
                    authority,
                    own: own.map(|(certificate, key)| EtcdIdentity { certificate, key }),
                });
                if options.tls.is_some() {
                    for endpoint in &mut options.endpoints {
                        // Setting a scheme that a URL of this form may have does not fail.
                        let _ = endpoint.set_scheme("https");
                    }
                }
            }
            // Whoever chose another store on purpose may leave the files in their configuration.
            (_, Some((given, setting))) if self.store.source == Source::Default => {
                return Err(ServerError::NoStore {
                    given,
                    source_of_given: setting.source.clone(),
                });
            }
            _ => {}
        }
        Ok(choice)
    }
}

/// Every way to set a setting, in words.
fn ways(key: &str) -> String {
    let described = |setting: &&Description| setting.key == key;
    match DESCRIPTIONS.iter().find(described) {
        None => key.to_owned(),
        Some(setting) => format!(
            "{}, {} or {key} in the configuration file",
            setting.flag, setting.variable.name
        ),
    }
}

/// A path in the file; an empty one would be the working folder, which nobody means.
fn some_path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Utf8PathBuf>, D::Error> {
    match Option::<String>::deserialize(deserializer)? {
        Some(text) if text.is_empty() => Err(serde::de::Error::custom(
            "expected a path, which is not empty",
        )),
        text => Ok(text.map(Utf8PathBuf::from)),
    }
}

fn some_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NonZeroU32>, D::Error> {
    let number = Option::<u32>::deserialize(deserializer)?;
    let checked = number.map(|number| NonZeroU32::new(number).ok_or_else(value::expected_number));
    checked.transpose().map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests;
