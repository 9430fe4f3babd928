//! The decisions about tools, on machines that are made up.

use std::cell::{Cell, RefCell};
use std::path::Path;

use super::*;
use crate::environment::Environment;

/// A tool that is there once it was installed.
struct Pretended<'t> {
    name: &'static str,
    present: Cell<bool>,
    root_only: bool,
    works: bool,
    log: &'t RefCell<Vec<String>>,
}

impl Tool for Pretended<'_> {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn state(&self) -> Result<State> {
        Ok(if self.present.get() {
            State::Present
        } else {
            State::Missing("not there".into())
        })
    }

    fn needs_root(&self) -> bool {
        self.root_only
    }

    fn install(&self) -> Result<()> {
        self.log.borrow_mut().push(self.name.to_owned());
        self.present.set(self.works);
        Ok(())
    }

    fn by_hand(&self) -> String {
        format!("sudo get {}", self.name)
    }
}

#[test]
fn someone_without_root_is_told_all_commands_at_once_and_only_those() {
    let log = RefCell::new(Vec::new());
    let tool = |name, present, root_only| -> Box<dyn Tool + '_> {
        Box::new(Pretended {
            name,
            present: Cell::new(present),
            root_only,
            works: true,
            log: &log,
        })
    };
    let tools = [
        tool("a", false, true),
        tool("b", true, true),
        tool("c", false, false),
        tool("d", false, true),
    ];
    let text = refusal(&tools).unwrap();
    assert!(text.contains("sudo get a\n    sudo get d\n"), "{text}");
    assert!(!text.contains("get b") && !text.contains("get c"), "{text}");
    assert!(log.borrow().is_empty());
}

fn workspace(folder: &Path, is_root: bool) -> Workspace {
    Workspace {
        root: folder.join("checkout"),
        tools: folder.join("tools"),
        target: folder.join("target"),
        sysroot: folder.join("sysroot"),
        environment: Environment::default(),
        is_root,
    }
}

fn install_pretended(is_root: bool, works: bool, present: bool) -> (Result<()>, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let log = RefCell::new(Vec::new());
    let tool = Pretended {
        name: "a",
        present: Cell::new(present),
        root_only: true,
        works,
        log: &log,
    };
    let result = ensure_tools(&workspace(folder.path(), is_root), &[Box::new(tool)]);
    (result, log.into_inner())
}

#[test]
fn what_is_there_is_not_installed_again() {
    let (result, log) = install_pretended(true, true, true);
    result.unwrap();
    assert!(log.is_empty());
}

#[test]
fn root_installs_what_is_missing() {
    let (result, log) = install_pretended(true, true, false);
    result.unwrap();
    assert_eq!(log, ["a"]);
}

#[test]
fn an_install_without_effect_is_an_error() {
    let (result, _) = install_pretended(true, false, false);
    assert_eq!(
        result.unwrap_err().to_string(),
        "a was installed and is still not usable: not there"
    );
}

#[test]
fn nothing_is_installed_without_the_right_to() {
    let (result, log) = install_pretended(false, true, false);
    assert!(result.unwrap_err().to_string().contains("sudo get a"));
    assert!(log.is_empty());
}

#[test]
fn an_empty_machine_misses_every_tool_of_ours() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = workspace(folder.path(), true);
    for tool in [
        Box::new(wine::install::Wine::new(&workspace)) as Box<dyn Tool + '_>,
        Box::new(wine::template::Template::new(&workspace)),
        Box::new(wine::winrun::Winrun::new(&workspace)),
        Box::new(python::Python::new(&workspace)),
        Box::new(cargo_install::CargoTool::nextest(&workspace)),
        Box::new(cargo_install::CargoTool::deny(&workspace)),
    ] {
        assert_ne!(tool.state().unwrap(), State::Present, "{}", tool.name());
    }
}
