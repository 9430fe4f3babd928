//! What packages cost: ids, unpacking, activation, each against the plain tool that does the part of it that
//! nobody can avoid.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use fs_err as fs;

use super::{Measurement, Stage};
use crate::run;

const PACKAGES: usize = 80;
const EXTRA_FILES: usize = 2_000;
const ARCHIVE_FILES: usize = 20_000;
const ARCHIVE_FILE_BYTES: usize = 15_000;
const ACTIVE_FILES: usize = 30_000;

/// Ids and order of a tree, against hashing its files alone.
pub(super) const IDS: Measurement = Measurement {
    name: "ids of 80 packages, 2,000 files",
    peer: "sha1sum of the files",
    limit: Some(1.5),
    rounds: 15,
    prepare: |stage| {
        let each = EXTRA_FILES / PACKAGES;
        for package in 0..PACKAGES {
            let folder = stage.path(&format!("tree/p{package}"));
            fs::create_dir_all(folder.join("extra/sub"))?;
            fs::write(folder.join("build"), "true\n")?;
            // A chain would be no tree, and no requirement no order.
            let requires = if package % 8 == 0 {
                "{}".to_owned()
            } else {
                format!(r#"{{"requires": ["p{}"]}}"#, package / 8 * 8)
            };
            fs::write(folder.join("buildinfo.json"), requires)?;
            for file in 0..each {
                let bytes = content(package * each + file, 16_000 + file * 100);
                fs::write(folder.join(format!("extra/sub/f{file}")), bytes)?;
            }
        }
        fs::write(stage.path("tree/treeinfo.json"), "{}")?;
        Ok(())
    },
    ours: |stage| {
        let mut command = stage.transom();
        command.args(["package", "tree", "-o", "json", "--packages"]);
        command.arg(stage.path("tree"));
        Ok(command)
    },
    theirs: |stage| {
        let mut command = stage.workspace.command("sha1sum");
        for package in 0..PACKAGES {
            let folder = stage.path(&format!("tree/p{package}/extra/sub"));
            for entry in fs::read_dir(folder)? {
                command.arg(entry?.path());
            }
        }
        Ok(command)
    },
};

/// Checking and unpacking an archive, against unpacking alone.
pub(super) const UNPACK: Measurement = Measurement {
    name: "verify and unpack 300 MB, 20,000 files",
    peer: "tar --zstd -x",
    limit: Some(1.2),
    rounds: 5,
    prepare: |stage| {
        let folder = stage.path("tree/big");
        for at in 0..ARCHIVE_FILES {
            let below = folder.join(format!("extra/share/d{}", at % 100));
            fs::create_dir_all(&below)?;
            fs::write(
                below.join(format!("f{at}")),
                content(at, ARCHIVE_FILE_BYTES),
            )?;
        }
        fs::write(
            folder.join("buildinfo.json"),
            r#"{"install": [{"copy": "extra/share/**", "to": "share/"}]}"#,
        )?;
        fs::write(stage.path("tree/treeinfo.json"), "{}")?;
        let mut build = stage.transom();
        build.args(["package", "build", "big", "--packages"]);
        build.arg(stage.path("tree"));
        run::quietly(&mut build)?;
        let archive = archive(&stage.path("tree/cache/packages/big"))?;
        let name = archive.file_name().context("an archive has a name")?;
        fs::rename(&archive, stage.folder.join(name))?;
        Ok(())
    },
    ours: |stage| {
        let root = stage.fresh("ours")?;
        let mut command = node(stage, "add", &root);
        command.arg(archive(&stage.folder)?);
        Ok(command)
    },
    theirs: |stage| {
        let target = stage.fresh("theirs")?;
        let mut command = stage.workspace.command("tar");
        command.args(["--zstd", "-x", "-C"]).arg(target);
        command.arg("-f").arg(archive(&stage.folder)?);
        Ok(command)
    },
};

/// A generation of packages that are there already, against a tree of links to them.
pub(super) const ACTIVATE: Measurement = Measurement {
    name: "activate 80 packages, 30,000 files",
    peer: "cp -rs of the same folders",
    limit: Some(1.5),
    rounds: 7,
    prepare: |stage| {
        let each = ACTIVE_FILES / PACKAGES;
        for package in 0..PACKAGES {
            let folder = stage.path(&format!("packages/p{package}--1"));
            for at in 0..each {
                let below = match at % 4 {
                    0 => format!("bin/p{package}-{at}"),
                    1 => format!("etc/p{package}/{at}"),
                    2 => format!("include/p{package}/d{}/{at}", at % 10),
                    _ => format!("lib/p{package}/d{}/{at}", at % 10),
                };
                let path = folder.join(below);
                fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
                fs::write(path, "content")?;
            }
            fs::write(folder.join("pkginfo.json"), "{}")?;
        }
        Ok(())
    },
    ours: |stage| {
        let root = stage.fresh("ours")?;
        let mut command = node(stage, "activate", &root);
        command.arg("--repository").arg(stage.path("packages"));
        command.args(["--rooted-systemd", "--no-systemd"]);
        for package in 0..PACKAGES {
            command.arg(format!("p{package}--1"));
        }
        Ok(command)
    },
    theirs: |stage| {
        let target = stage.fresh("theirs")?;
        let mut command = stage.workspace.command("cp");
        command.arg("-rs");
        for package in 0..PACKAGES {
            for folder in ["bin", "etc", "include", "lib"] {
                command.arg(stage.path(&format!("packages/p{package}--1/{folder}")));
            }
        }
        command.arg(target);
        Ok(command)
    },
};

/// A verb of a node that has nothing but this root.
fn node(stage: &Stage<'_>, verb: &str, root: &Path) -> Command {
    let mut command = stage.transom();
    command.args(["package", verb, "--root"]).arg(root);
    command.arg("--config-dir").arg(stage.path("config"));
    command.arg("--state-dir-root").arg(stage.path("state"));
    command
}

/// The one archive in a folder.
fn archive(folder: &Path) -> Result<std::path::PathBuf> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(".tar.zst") {
            return Ok(path);
        }
    }
    anyhow::bail!("there is no archive in {}", folder.display())
}

/// Text that compresses about as well as programs do, and is another one for each file.
fn content(seed: usize, length: usize) -> Vec<u8> {
    let mut state = seed as u64 ^ 0x9e37_79b9_7f4a_7c15;
    let mut text = String::with_capacity(length + 32);
    while text.len() < length {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let _ = write!(text, "{:x} shared words ", state >> 33);
    }
    text.truncate(length);
    text.into_bytes()
}
