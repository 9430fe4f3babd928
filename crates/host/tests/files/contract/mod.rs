//! What every system promises. Each case runs on this machine and on the fakes of both systems.

/// Makes each case three tests.
macro_rules! contract {
    ($($case:ident),* $(,)?) => {
        mod native {
            $(#[test] fn $case() { super::$case(&crate::Machine::native()); })*
        }
        mod fake_linux {
            $(#[test] fn $case() { super::$case(&crate::contract::fake_linux()); })*
        }
        mod fake_windows {
            $(#[test] fn $case() { super::$case(&crate::contract::fake_windows()); })*
        }
    };
}

mod content;
mod places;
mod trees;

use camino::Utf8PathBuf;
use transom_host::files::Access;
use transom_host::files::fake::FakeFiles;
use transom_model::os::Os;

use crate::Machine;

fn fake_linux() -> Machine {
    fake(Os::Linux, "/test")
}

fn fake_windows() -> Machine {
    fake(Os::Windows, r"C:\Test")
}

fn fake(os: Os, root: &str) -> Machine {
    let machine = Machine {
        files: Box::new(FakeFiles::new(os)),
        root: root.into(),
        _folder: None,
    };
    machine.files.create_dir_all(&machine.root).expect("a root");
    machine
}

impl Machine {
    fn write(&self, below: &str, content: &str) -> Utf8PathBuf {
        let path = self.path(below);
        self.files
            .write_durable(&path, content.as_bytes(), Access::Public)
            .expect("written");
        path
    }

    fn make_dir(&self, below: &str) -> Utf8PathBuf {
        let path = self.path(below);
        self.files.create_dir_all(&path).expect("made");
        path
    }

    fn content(&self, below: &str) -> String {
        let bytes = self.files.read(&self.path(below), 1 << 20).expect("read");
        String::from_utf8(bytes).expect("text")
    }

    fn names(&self, below: &str) -> Vec<String> {
        let folder = if below.is_empty() {
            self.root.clone()
        } else {
            self.path(below)
        };
        let entries = self.files.list(&folder).expect("listed");
        entries.into_iter().map(|entry| entry.name).collect()
    }

    fn is_there(&self, below: &str) -> bool {
        self.files.metadata(&self.path(below)).is_ok()
    }

    /// A small tree with an executable, an empty folder and, on Linux, a link.
    fn plant(&self) -> Utf8PathBuf {
        let tree = self.make_dir("tree");
        self.make_dir("tree/bin/empty");
        self.write("tree/readme", "read me");
        let tool = self.path("tree/bin/tool");
        self.files
            .write_durable(&tool, b"run me", Access::Executable)
            .expect("written");
        if self.files.os() == Os::Linux {
            let link = self.path("tree/latest");
            self.files.link_dir("bin".into(), &link).expect("linked");
        }
        tree
    }

    fn tree_names(&self) -> Vec<&'static str> {
        match self.files.os() {
            Os::Linux => vec!["bin", "latest", "readme"],
            Os::Windows => vec!["bin", "readme"],
        }
    }
}
