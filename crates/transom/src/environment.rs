//! Every environment variable that Transom reads, documented, and the one way to read them.
//! Invariant: no other file reads a variable, and the reference page is generated from this list.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use transom_model::Os;

use crate::suggestion;

/// One documented variable.
#[derive(Debug, PartialEq, Eq)]
pub struct Variable {
    pub name: &'static str,
    /// What it does, as one sentence without a full stop.
    pub purpose: &'static str,
    /// What it may hold.
    pub values: &'static str,
    /// The setting it sets, if it is one of ours.
    pub setting: Option<&'static str>,
}

pub const OUTPUT: Variable = Variable {
    name: "TRANSOM_OUTPUT",
    purpose: "Form of what commands print",
    values: "`table`, `wide`, `json`, `yaml` or `name`",
    setting: Some("output"),
};

pub const COLOR: Variable = Variable {
    name: "TRANSOM_COLOR",
    purpose: "When to use colours; stronger than `NO_COLOR` and its like",
    values: "`auto`, `always` or `never`",
    setting: Some("color"),
};

pub const QUIET: Variable = Variable {
    name: "TRANSOM_QUIET",
    purpose: "Print data and errors only",
    values: "`1` or `0`, `true` or `false`",
    setting: Some("quiet"),
};

pub const PROGRESS: Variable = Variable {
    name: "TRANSOM_PROGRESS",
    purpose: "Show how far long operations are",
    values: "`1` or `0`, `true` or `false`",
    setting: Some("progress"),
};

pub const LOG_LEVEL: Variable = Variable {
    name: "TRANSOM_LOG_LEVEL",
    purpose: "Which log events are written to stderr",
    values: "`off`, `error`, `warn`, `info`, `debug`, `trace`, or a filter such as `warn,transom_host=debug`",
    setting: Some("log.level"),
};

pub const LOG_FORMAT: Variable = Variable {
    name: "TRANSOM_LOG_FORMAT",
    purpose: "Form of log events",
    values: "`text` or `json`",
    setting: Some("log.format"),
};

pub const SERVER_DATA_DIR: Variable = Variable {
    name: "TRANSOM_SERVER_DATA_DIR",
    purpose: "The folder of the server's state, its certificates and the administrator's kubeconfig",
    values: "a path",
    setting: Some("server.dataDir"),
};

pub const SERVER_LISTEN: Variable = Variable {
    name: "TRANSOM_SERVER_LISTEN",
    purpose: "Address and port of the server; port 0 lets the system choose",
    values: "such as `127.0.0.1:6443` or `[::]:6443`",
    setting: Some("server.listen"),
};

pub const SERVER_NAMES: Variable = Variable {
    name: "TRANSOM_SERVER_NAMES",
    purpose: "Names and addresses, beside the usual ones, under which clients reach the server",
    values: "host names and addresses, with commas between them",
    setting: Some("server.names"),
};

pub const SERVER_STORE: Variable = Variable {
    name: "TRANSOM_SERVER_STORE",
    purpose: "Where the server keeps objects",
    values: "`local`, `memory` or `etcd://HOST:PORT[,HOST:PORT…][/PREFIX]`",
    setting: Some("server.store"),
};

pub const SERVER_ETCD_CA: Variable = Variable {
    name: "TRANSOM_SERVER_ETCD_CA",
    purpose: "Who signed the certificates of etcd's servers; with it the connection is encrypted",
    values: "the path of a PEM file",
    setting: Some("server.etcd.ca"),
};

pub const SERVER_ETCD_CERT: Variable = Variable {
    name: "TRANSOM_SERVER_ETCD_CERT",
    purpose: "The certificate that the server shows to etcd",
    values: "the path of a PEM file",
    setting: Some("server.etcd.cert"),
};

pub const SERVER_ETCD_KEY: Variable = Variable {
    name: "TRANSOM_SERVER_ETCD_KEY",
    purpose: "The key of that certificate",
    values: "the path of a PEM file",
    setting: Some("server.etcd.key"),
};

pub const SERVER_MAX_CONNECTIONS: Variable = Variable {
    name: "TRANSOM_SERVER_MAX_CONNECTIONS",
    purpose: "How many connections the server has open at once; others wait",
    values: "a number, at least 1",
    setting: Some("server.maxConnections"),
};

pub const SERVER_REGISTRIES: Variable = Variable {
    name: "TRANSOM_SERVER_REGISTRIES",
    purpose: "Mirrors, passwords and certificates of the registries that the server asks what images are for",
    values: "the path of a YAML file in the form of k3s",
    setting: Some("server.registries"),
};

pub const SERVER_SCHEDULERS: Variable = Variable {
    name: "TRANSOM_SERVER_SCHEDULERS",
    purpose: "Schedulers, beside the usual one, that pods can name in `spec.schedulerName`",
    values: "names, with blanks between them; behind a name may stand `,packing=fill`, `,nodes=PERCENT` and how much \
             a part of a score counts, such as `,images=5`: `taints`, `affinity`, `resources`, `balance`, `images`, \
             `spread` or `neighbours`",
    setting: Some("server.schedulers"),
};

pub const CONFIG: Variable = Variable {
    name: "TRANSOM_CONFIG",
    purpose: "The configuration file; it must exist",
    values: "a path",
    setting: Some("config"),
};

pub const ROOT: Variable = Variable {
    name: "TRANSOM_ROOT",
    purpose: "The folder that stands for `/` or `C:\\`, for tests and image builds",
    values: "a path",
    setting: Some("root"),
};

pub const NO_COLOR: Variable = Variable {
    name: "NO_COLOR",
    purpose: "No colours, where nothing of ours says otherwise",
    values: "anything but empty",
    setting: None,
};

pub const CLICOLOR_FORCE: Variable = Variable {
    name: "CLICOLOR_FORCE",
    purpose: "Colours even when the output is not a terminal; `NO_COLOR` wins over it",
    values: "anything but empty and `0`",
    setting: None,
};

pub const CLICOLOR: Variable = Variable {
    name: "CLICOLOR",
    purpose: "`0` means no colours",
    values: "`0` or `1`",
    setting: None,
};

pub const TERM: Variable = Variable {
    name: "TERM",
    purpose: "`dumb` means no colours and no moving progress",
    values: "the name of a terminal",
    setting: None,
};

pub const LC_ALL: Variable = Variable {
    name: "LC_ALL",
    purpose: "On Linux the first of `LC_ALL`, `LC_CTYPE` and `LANG` that is set decides whether signs beyond ASCII are shown",
    values: "a locale such as `en_GB.UTF-8`",
    setting: None,
};

pub const LC_CTYPE: Variable = Variable {
    name: "LC_CTYPE",
    purpose: "See `LC_ALL`",
    values: "a locale",
    setting: None,
};

pub const LANG: Variable = Variable {
    name: "LANG",
    purpose: "See `LC_ALL`",
    values: "a locale",
    setting: None,
};

pub const WT_SESSION: Variable = Variable {
    name: "WT_SESSION",
    purpose: "Set by Windows Terminal, which shows signs beyond ASCII",
    values: "anything but empty",
    setting: None,
};

pub const KUBECONFIG: Variable = Variable {
    name: "KUBECONFIG",
    purpose: "Which cluster commands talk to, as for kubectl; of several files the first counts",
    values: "a path",
    setting: None,
};

pub const TOKEN: Variable = Variable {
    name: "TRANSOM_TOKEN",
    purpose: "The token with which this machine joins a cluster; `transom token create` makes one",
    values: "a join token",
    setting: None,
};

pub const HOME: Variable = Variable {
    name: "HOME",
    purpose: "Where `.kube/config` is looked for on Linux",
    values: "a path",
    setting: None,
};

pub const USERPROFILE: Variable = Variable {
    name: "USERPROFILE",
    purpose: "Where `.kube\\config` is looked for on Windows",
    values: "a path",
    setting: None,
};

pub const NOTIFY_SOCKET: Variable = Variable {
    name: "NOTIFY_SOCKET",
    purpose: "Where a service tells its supervisor that it is ready; set by the supervisor",
    values: "a socket or a named pipe",
    setting: None,
};

pub const FAULT: Variable = Variable {
    name: transom_host::files::fault::TRANSOM_FAULT,
    purpose: "Makes file operations fail or the process die at a chosen step, for tests",
    values: "`die@7`, `fail@7` or `fail@files.replace.rename`",
    setting: None,
};

/// All of them, as the reference lists them.
pub const ALL: &[&Variable] = &[
    &KUBECONFIG,
    &TOKEN,
    &HOME,
    &USERPROFILE,
    &NOTIFY_SOCKET,
    &FAULT,
    &OUTPUT,
    &COLOR,
    &QUIET,
    &PROGRESS,
    &LOG_LEVEL,
    &LOG_FORMAT,
    &SERVER_DATA_DIR,
    &SERVER_LISTEN,
    &SERVER_NAMES,
    &SERVER_STORE,
    &SERVER_ETCD_CA,
    &SERVER_ETCD_CERT,
    &SERVER_ETCD_KEY,
    &SERVER_MAX_CONNECTIONS,
    &SERVER_REGISTRIES,
    &SERVER_SCHEDULERS,
    &CONFIG,
    &ROOT,
    &NO_COLOR,
    &CLICOLOR_FORCE,
    &CLICOLOR,
    &TERM,
    &LC_ALL,
    &LC_CTYPE,
    &LANG,
    &WT_SESSION,
];

/// A variable holds bytes that are not text.
#[derive(Debug, thiserror::Error)]
#[error("the variable {name} is not valid UTF-8: {}", value.to_string_lossy())]
pub struct NotText {
    pub name: &'static str,
    pub value: OsString,
}

/// The variables of a process, taken once.
#[derive(Debug, Clone)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// Takes `pairs` as the variables.
    ///
    /// # Platform behavior
    /// Names do not depend on letter case on Windows.
    pub fn new<Name, Value>(host: Os, pairs: impl IntoIterator<Item = (Name, Value)>) -> Self
    where
        Name: Into<OsString>,
        Value: Into<OsString>,
    {
        let spelled = |name: OsString| match host {
            Os::Windows => name.to_ascii_uppercase(),
            Os::Linux => name,
        };
        let variables = pairs
            .into_iter()
            .map(|(name, value)| (spelled(name.into()), value.into()))
            .collect();
        Self { variables }
    }

    /// All variables that are text, for programs that are to inherit them.
    pub fn all(&self) -> BTreeMap<String, String> {
        self.variables
            .iter()
            .filter_map(|(name, value)| {
                Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()))
            })
            .collect()
    }

    /// The text of `variable`; an empty one counts as not set.
    pub fn text(&self, variable: &Variable) -> Result<Option<&str>, NotText> {
        match self.raw(variable) {
            None => Ok(None),
            Some(value) => value.to_str().map(Some).ok_or_else(|| NotText {
                name: variable.name,
                value: value.to_owned(),
            }),
        }
    }

    /// Whether `variable` holds anything but nothing.
    pub fn is_set(&self, variable: &Variable) -> bool {
        self.raw(variable).is_some()
    }

    /// Whether `variable` is exactly `value`.
    pub fn is(&self, variable: &Variable, value: &str) -> bool {
        self.raw(variable).is_some_and(|actual| actual == value)
    }

    /// Variables that look like a misspelling of ours, each with the name that was probably meant.
    pub fn probable_mistakes(&self) -> Vec<(String, &'static str)> {
        self.variables
            .keys()
            .filter_map(|name| name.to_str())
            .filter(|name| name.starts_with("TRANSOM_"))
            .filter(|name| ALL.iter().all(|variable| variable.name != *name))
            .filter_map(|name| {
                let known = ALL.iter().map(|variable| variable.name);
                let meant = suggestion::closest(name, known.filter(|n| n.starts_with("TRANSOM_")));
                // Common beginnings make all of our names alike; ask for more than that here.
                meant
                    .filter(|meant| strsim::levenshtein(meant, name) <= 2)
                    .map(|meant| (name.to_owned(), meant))
            })
            .collect()
    }

    /// Whether the terminal shows signs beyond ASCII.
    pub fn shows_unicode(&self) -> bool {
        let locale = [&LC_ALL, &LC_CTYPE, &LANG]
            .into_iter()
            .find_map(|variable| self.raw(variable));
        let locale = locale.map(|locale| locale.to_string_lossy().to_lowercase());
        self.is_set(&WT_SESSION)
            || locale.is_some_and(|name| name.contains("utf-8") || name.contains("utf8"))
    }

    fn raw(&self, variable: &Variable) -> Option<&OsString> {
        self.variables
            .get(OsStr::new(variable.name))
            .filter(|value| !value.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_variable_is_not_set() {
        let environment = Environment::new(Os::Linux, [("NO_COLOR", "")]);
        assert!(!environment.is_set(&NO_COLOR));
        assert_eq!(environment.text(&NO_COLOR).unwrap(), None);
    }

    #[test]
    fn letter_case_matters_on_linux_only() {
        let pairs = [("Transom_Output", "json")];
        let linux = Environment::new(Os::Linux, pairs);
        let windows = Environment::new(Os::Windows, pairs);
        assert_eq!(linux.text(&OUTPUT).unwrap(), None);
        assert_eq!(windows.text(&OUTPUT).unwrap(), Some("json"));
    }

    #[test]
    fn a_misspelt_variable_of_ours_is_noticed_and_a_foreign_one_is_not() {
        let environment = Environment::new(
            Os::Linux,
            [
                ("TRANSOM_OUPUT", "json"),
                ("TRANSOM_NODE_NAME", "a"),
                ("PATH", "/bin"),
            ],
        );
        assert_eq!(
            environment.probable_mistakes(),
            [("TRANSOM_OUPUT".to_owned(), "TRANSOM_OUTPUT")]
        );
    }

    #[test]
    fn signs_beyond_ascii_need_a_locale_or_a_terminal_that_shows_them() {
        let shows = |pairs: &[(&str, &str)]| {
            Environment::new(Os::Linux, pairs.iter().copied()).shows_unicode()
        };
        assert!(!shows(&[]));
        assert!(shows(&[("LANG", "de_DE.UTF-8")]));
        assert!(shows(&[("LANG", "C.utf8")]));
        assert!(!shows(&[("LC_ALL", "C"), ("LANG", "de_DE.UTF-8")]));
        assert!(shows(&[("WT_SESSION", "1")]));
    }

    #[test]
    fn every_variable_is_listed_once() {
        let mut names: Vec<_> = ALL.iter().map(|variable| variable.name).collect();
        names.sort_unstable();
        let before = names.len();
        names.dedup();
        assert_eq!(before, names.len());
    }
}
