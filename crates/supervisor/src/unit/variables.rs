//! The variables of a service. Names are one variable when the service's system takes them for one:
//! on Windows `Path` and `PATH` never stand beside each other.

use std::collections::BTreeMap;

use transom_model::os::Os;

/// Where Linux programs are looked for.
const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What Windows programs rely on: about the machine and about who runs them, nothing else.
const OF_WINDOWS: &[&str] = &[
    "SystemRoot",
    "SystemDrive",
    "windir",
    "Path",
    "PATHEXT",
    "ComSpec",
    "TEMP",
    "TMP",
    "ProgramData",
    "ProgramFiles*",
    "ProgramW6432",
    "CommonProgramFiles*",
    "CommonProgramW6432",
    "ALLUSERSPROFILE",
    "PUBLIC",
    "COMPUTERNAME",
    "NUMBER_OF_PROCESSORS",
    "PROCESSOR_*",
    "OS",
    "USERPROFILE",
    "USERNAME",
    "USERDOMAIN",
    "DriverData",
];

const OF_LINUX: &[&str] = &["LANG", "LC_*"];

/// Variables by name, as one system sees names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variables {
    os: Os,
    /// By the form of the name that the system compares.
    entries: BTreeMap<String, (String, String)>,
}

impl Variables {
    pub fn new(os: Os) -> Self {
        Self {
            os,
            entries: BTreeMap::new(),
        }
    }

    /// What every service finds: of our own variables only those that are no secret of ours.
    pub fn of_every_service(os: Os, ours: &BTreeMap<String, String>) -> Self {
        let mut variables = Self::new(os);
        let passed = match os {
            Os::Linux => {
                variables.insert("PATH", SEARCH_PATH);
                OF_LINUX
            }
            Os::Windows => OF_WINDOWS,
        };
        for (name, value) in ours {
            let key = comparable(os, name);
            let is_meant = |pattern: &&str| {
                let pattern = comparable(os, pattern);
                match pattern.strip_suffix('*') {
                    Some(start) => key.starts_with(start),
                    None => key == pattern,
                }
            };
            if passed.iter().any(is_meant) {
                variables.insert(name, value);
            }
        }
        variables
    }

    /// Takes `name` over from `ours`, if it is there.
    pub fn pass(&mut self, ours: &BTreeMap<String, String>, name: &str) {
        let key = comparable(self.os, name);
        let found = ours
            .iter()
            .find(|(name, _)| comparable(self.os, name) == key);
        if let Some((name, value)) = found {
            self.insert(name, value);
        }
    }

    /// Sets a variable. One that is there keeps its spelling.
    pub fn insert(&mut self, name: impl AsRef<str>, value: impl Into<String>) {
        let name = name.as_ref();
        let entry = self.entries.entry(comparable(self.os, name));
        entry.or_insert_with(|| (name.to_owned(), String::new())).1 = value.into();
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.entries.get(&comparable(self.os, name))?;
        Some(value)
    }

    /// Removes what `UnsetEnvironment=` names: a variable, or a variable with one value.
    pub fn unset(&mut self, word: &str) {
        match word.split_once('=') {
            Some((name, value)) if self.get(name) != Some(value) => {}
            Some((name, _)) => {
                self.entries.remove(&comparable(self.os, name));
            }
            None => {
                self.entries.remove(&comparable(self.os, word));
            }
        }
    }

    pub fn into_map(self) -> BTreeMap<String, String> {
        self.entries.into_values().collect()
    }
}

fn comparable(os: Os, name: &str) -> String {
    match os {
        Os::Linux => name.to_owned(),
        Os::Windows => name.to_uppercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn a_service_on_windows_gets_what_programs_rely_on_and_no_secret_of_ours() {
        let ours = map(&[
            ("SYSTEMROOT", r"C:\Windows"),
            ("Path", r"C:\Windows\System32"),
            ("ProgramFiles(x86)", r"C:\Program Files (x86)"),
            ("PROCESSOR_ARCHITECTURE", "AMD64"),
            ("TRANSOM_TOKEN", "secret"),
            ("PathOfSecrets", "secret"),
            ("OSSECRET", "secret"),
        ]);
        let found = Variables::of_every_service(Os::Windows, &ours).into_map();
        let mut expected = ours.clone();
        expected.retain(|_, value| value != "secret");
        assert_eq!(found, expected);
    }

    #[test]
    fn a_service_on_linux_gets_a_search_path_of_its_own_and_the_language() {
        let ours = map(&[
            ("PATH", "/home/someone/bin"),
            ("LANG", "de_DE.UTF-8"),
            ("LC_TIME", "C"),
            ("LANGUAGE", "secret"),
            ("HOME", "/root"),
        ]);
        let found = Variables::of_every_service(Os::Linux, &ours).into_map();
        let expected = map(&[
            ("PATH", SEARCH_PATH),
            ("LANG", "de_DE.UTF-8"),
            ("LC_TIME", "C"),
        ]);
        assert_eq!(found, expected);
    }

    #[test]
    fn windows_has_one_variable_whatever_its_case_and_linux_has_two() {
        let ours = map(&[("PATH", "old"), ("Secret", "passed on")]);
        let mut variables = Variables::of_every_service(Os::Windows, &ours);
        variables.insert("Path", "new");
        variables.pass(&ours, "SECRET");
        variables.pass(&ours, "MISSING");
        assert_eq!(variables.get("path"), Some("new"));
        let expected = map(&[("PATH", "new"), ("Secret", "passed on")]);
        assert_eq!(variables.into_map(), expected);

        let mut variables = Variables::of_every_service(Os::Linux, &ours);
        variables.insert("Path", "new");
        variables.pass(&ours, "SECRET");
        let expected = map(&[("PATH", SEARCH_PATH), ("Path", "new")]);
        assert_eq!(variables.into_map(), expected);
    }

    #[test]
    fn unsetting_a_pair_needs_the_value_too() {
        let mut variables = Variables::new(Os::Windows);
        for name in ["A", "B", "C"] {
            variables.insert(name, "1");
        }
        for word in ["a=1", "b=2", "c", "d", "d=1"] {
            variables.unset(word);
        }
        assert_eq!(variables.into_map(), map(&[("B", "1")]));
    }
}
