//! Bakes what is known about the build into the binary. Invariant: nothing here can fail a build (a
//! source archive has no git), and nothing depends on the clock, so equal sources give equal bytes.

#![expect(
    clippy::disallowed_methods,
    reason = "a build script is told everything through variables of cargo"
)]

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    // Without this line cargo would run the script again after any change in the package.
    println!("cargo::rerun-if-changed=build.rs");

    export("TRANSOM_BUILD_TARGET", env::var("TARGET").ok());
    export("TRANSOM_BUILD_PROFILE", env::var("PROFILE").ok());
    export("TRANSOM_BUILD_RUSTC", rustc_version());

    let around = Checkout::around();
    for path in around.iter().flat_map(Checkout::moves_with_head) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let source = around.as_ref().filter(|checkout| checkout.is_ours());
    export("TRANSOM_BUILD_COMMIT", source.and_then(Checkout::commit));
    export("TRANSOM_BUILD_TIME", source.and_then(Checkout::commit_time));
    export("TRANSOM_BUILD_DIRTY", source.and_then(Checkout::dirty));
}

/// Hands a value to the crate; an empty one means "not known".
fn export(name: &str, value: Option<String>) {
    println!("cargo::rustc-env={name}={}", value.unwrap_or_default());
}

fn rustc_version() -> Option<String> {
    output(Command::new(env::var_os("RUSTC")?).arg("--version"))
}

/// The git checkout that this package lies in.
struct Checkout {
    package: PathBuf,
}

impl Checkout {
    /// None when there is no git here.
    fn around() -> Option<Self> {
        let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?);
        let checkout = Self { package };
        checkout.git(&["rev-parse", "--git-dir"])?;
        Some(checkout)
    }

    /// Whether the repository around us is ours: an archive that was unpacked inside another project
    /// must not report that project's commit.
    fn is_ours(&self) -> bool {
        self.git(&["ls-files", "--error-unmatch", "build.rs"])
            .is_some()
    }

    fn commit(&self) -> Option<String> {
        self.git(&["rev-parse", "HEAD"])
    }

    fn commit_time(&self) -> Option<String> {
        self.git(&["log", "-1", "--format=%cI"])
    }

    /// Whether tracked files differed from the commit when this script ran.
    fn dirty(&self) -> Option<String> {
        let changes = self.git(&["status", "--porcelain", "--untracked-files=no"])?;
        Some((!changes.is_empty()).to_string())
    }

    /// Files that change exactly when HEAD names another commit. Only existing ones: cargo takes a
    /// missing file for a changed one.
    fn moves_with_head(&self) -> Vec<PathBuf> {
        let branch = self.git(&["symbolic-ref", "--quiet", "HEAD"]);
        ["HEAD", "logs/HEAD"]
            .into_iter()
            .chain(branch.as_deref())
            .filter_map(|name| self.git(&["rev-parse", "--git-path", name]))
            .map(|path| self.package.join(path))
            .filter(|path| Path::exists(path))
            .collect()
    }

    fn git(&self, arguments: &[&str]) -> Option<String> {
        output(
            Command::new("git")
                .arg("-C")
                .arg(&self.package)
                .args(arguments),
        )
    }
}

/// What the command printed, or None when it is missing or failed.
fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    if !output.status.success() {
        return None;
    }
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
