//! What has to be done, in which order, to put a root together. Decided before there is a child, from a
//! listing of what there is; the child only carries it out.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};

use super::{Root, Sandbox, SandboxError};
use crate::files::{FileError, Files, Kind};

/// What a machine consists of for a program; not its state, not its users' files.
const MACHINE: [&str; 8] = [
    "bin", "etc", "lib", "lib32", "lib64", "libx32", "sbin", "usr",
];
/// What every root has and no image brings.
const OWN: [&str; 6] = ["dev", "proc", "run", "sys", "tmp", "var"];
/// The devices that programs take for granted.
const DEVICES: [&str; 5] = ["full", "null", "random", "urandom", "zero"];
const STREAMS: [(&str, &str); 4] = [
    ("/proc/self/fd", "dev/fd"),
    ("/proc/self/fd/0", "dev/stdin"),
    ("/proc/self/fd/1", "dev/stdout"),
    ("/proc/self/fd/2", "dev/stderr"),
];

/// One step. Paths are below the new root, without a leading `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Dir {
        at: String,
        mode: u32,
    },
    File {
        at: String,
    },
    Symlink {
        target: String,
        at: String,
    },
    Memory {
        at: String,
        mode: u32,
    },
    Bind {
        from: Utf8PathBuf,
        at: String,
        writable: bool,
    },
    Processes {
        at: String,
    },
}

pub(super) fn plan(sandbox: &Sandbox, files: &dyn Files) -> Result<Vec<Action>, SandboxError> {
    let mut plan = Plan {
        files,
        targets: sandbox
            .mounts
            .iter()
            .map(|mount| below(&mount.to))
            .collect(),
        made: BTreeSet::new(),
        actions: Vec::new(),
    };
    plan.base(&sandbox.root).map_err(SandboxError::Files)?;
    plan.own();
    let mut before: Vec<String> = Vec::new();
    for mount in &sandbox.mounts {
        let at = below(&mount.to);
        let nested = before.iter().any(|other| is_below(&at, other));
        plan.mount(&mount.from, &at, mount.writable, nested)
            .map_err(SandboxError::Files)?;
        before.push(at);
    }
    Ok(plan.actions)
}

fn below(path: &Utf8Path) -> String {
    path.as_str().trim_matches('/').to_owned()
}

fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder)
        .is_some_and(|rest| rest.starts_with('/'))
}

struct Plan<'a> {
    files: &'a dyn Files,
    targets: Vec<String>,
    made: BTreeSet<String>,
    actions: Vec<Action>,
}

impl Plan<'_> {
    fn base(&mut self, root: &Root) -> Result<(), FileError> {
        let (folder, machine) = match root {
            Root::Machine => (Utf8Path::new("/"), true),
            Root::Folder(folder) => (folder.as_path(), false),
        };
        self.copy(folder, "", &|name| {
            if machine {
                MACHINE.contains(&name)
            } else {
                !OWN.contains(&name)
            }
        })
    }

    /// Shows what is in `folder`. A folder that something will be mounted below is made anew, because
    /// a mount needs a place and what is shown is not ours to change.
    fn copy(
        &mut self,
        folder: &Utf8Path,
        at: &str,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Result<(), FileError> {
        for entry in self.files.list(folder)? {
            let at = join(at, &entry.name);
            if !wanted(&entry.name) || self.targets.contains(&at) {
                continue;
            }
            match entry.metadata.kind {
                Kind::Link => {
                    let target = self.files.read_link(&entry.path)?.into_string();
                    self.made.insert(at.clone());
                    self.actions.push(Action::Symlink { target, at });
                }
                Kind::Dir if self.targets.iter().any(|target| is_below(target, &at)) => {
                    self.dir(&at, 0o755);
                    self.copy(&entry.path, &at, &|_| true)?;
                }
                Kind::Dir | Kind::File => self.mount(&entry.path, &at, false, false)?,
                Kind::Other => {}
            }
        }
        Ok(())
    }

    fn own(&mut self) {
        for name in ["dev", "run", "sys", "var"] {
            self.dir(name, 0o755);
        }
        for name in DEVICES {
            let at = format!("dev/{name}");
            self.actions.push(Action::File { at: at.clone() });
            let from = format!("/dev/{name}").into();
            self.actions.push(Action::Bind {
                from,
                at,
                writable: true,
            });
        }
        for (target, at) in STREAMS {
            self.actions.push(Action::Symlink {
                target: target.to_owned(),
                at: at.to_owned(),
            });
        }
        for name in ["tmp", "dev/shm", "var/tmp"] {
            self.dir(name, 0o755);
            self.actions.push(Action::Memory {
                at: name.to_owned(),
                mode: 0o1777,
            });
        }
        self.dir("proc", 0o755);
        self.actions.push(Action::Processes {
            at: "proc".to_owned(),
        });
    }

    fn mount(
        &mut self,
        from: &Utf8Path,
        at: &str,
        writable: bool,
        nested: bool,
    ) -> Result<(), FileError> {
        let is_dir = self.files.metadata(from)?.kind == Kind::Dir;
        if !nested {
            for (end, _) in at.match_indices('/') {
                self.dir(&at[..end], 0o755);
            }
            if is_dir {
                self.dir(at, 0o755);
            } else {
                self.actions.push(Action::File { at: at.to_owned() });
            }
        }
        self.actions.push(Action::Bind {
            from: from.to_owned(),
            at: at.to_owned(),
            writable,
        });
        Ok(())
    }

    fn dir(&mut self, at: &str, mode: u32) {
        if self.made.insert(at.to_owned()) {
            let at = at.to_owned();
            self.actions.push(Action::Dir { at, mode });
        }
    }
}

fn join(at: &str, name: &str) -> String {
    if at.is_empty() {
        name.to_owned()
    } else {
        format!("{at}/{name}")
    }
}

impl Action {
    /// What it does, for an error message.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Dir { at, .. } => format!("make the folder /{at}"),
            Self::File { at } => format!("make the file /{at}"),
            Self::Symlink { at, .. } => format!("make the link /{at}"),
            Self::Memory { at, .. } => format!("mount memory at /{at}"),
            Self::Bind { from, at, .. } => format!("mount {from} at /{at}"),
            Self::Processes { at } => format!("mount the table of processes at /{at}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use transom_model::Os;

    use super::super::Mount;
    use super::*;
    use crate::files::Access;
    use crate::files::fake::FakeFiles;

    #[test]
    fn a_mount_inside_an_image_finds_its_place() {
        let files = FakeFiles::new(Os::Linux);
        for folder in [
            "/image/usr",
            "/image/opt/tool",
            "/image/tmp",
            "/src",
            "/deps",
        ] {
            files.create_dir_all(folder.into()).unwrap();
        }
        for file in ["/image/init", "/build"] {
            files
                .write_durable(file.into(), b"", Access::Public)
                .unwrap();
        }
        let mount = |from: &str, to: &str, writable| Mount {
            from: from.into(),
            to: to.into(),
            writable,
        };
        let sandbox = Sandbox {
            root: Root::Folder("/image".into()),
            workspace: "/work".into(),
            mounts: vec![
                mount("/build", "/pkg/build", false),
                mount("/deps", "/opt/mesosphere", false),
                mount("/src", "/opt/mesosphere/packages/a", true),
            ],
            program: "/bin/true".into(),
            arguments: Vec::new(),
            environment: BTreeMap::new(),
            directory: "/".into(),
            log: "/log".into(),
            time_limit: Duration::from_secs(1),
        };
        let actions = plan(&sandbox, &files).unwrap();
        let shown: Vec<String> = actions
            .iter()
            .map(Action::describe)
            .filter(|action| !action.contains("/dev"))
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r"
        make the file /init
        mount /image/init at /init
        make the folder /opt
        make the folder /opt/tool
        mount /image/opt/tool at /opt/tool
        make the folder /usr
        mount /image/usr at /usr
        make the folder /run
        make the folder /sys
        make the folder /var
        make the folder /tmp
        mount memory at /tmp
        make the folder /var/tmp
        mount memory at /var/tmp
        make the folder /proc
        mount the table of processes at /proc
        make the folder /pkg
        make the file /pkg/build
        mount /build at /pkg/build
        make the folder /opt/mesosphere
        mount /deps at /opt/mesosphere
        mount /src at /opt/mesosphere/packages/a
        ");
    }
}
