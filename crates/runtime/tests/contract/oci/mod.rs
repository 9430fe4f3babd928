//! The contract's backend of real containers, and what only those can show. Needs root and namespaces.

mod containers;
mod interrupted;
mod machine;
mod stacks;
mod survival;

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use futures::future::BoxFuture;
use jiff::Timestamp;
use transom_runtime::images::{BuildFile, BuildKind, ImageSettings, Images, Platform, Registries};
use transom_runtime::oci::{LinuxUnpacker, Loopback, Network, OciHandle, OciRuntime, OciSettings};
use transom_runtime::{ContainerSpec, Mount, Propagation, Runtime};

use super::backend::{self, Ability, Backend, Role};

use super::harness::Case;

pub(crate) use machine::{is_possible, remove_cgroups};
pub(crate) use survival::{play_agent, serve};

/// Names of functions, as cases of this runtime.
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        pub(crate) fn cases() -> Vec<crate::harness::Case> {
            vec![$(crate::harness::Case {
                name: format!("oci::{}", stringify!($name)),
                run: Box::new(|| crate::harness::block_on($name())),
            }),*]
        }
    };
}
use cases;

pub(crate) fn own_cases() -> Vec<Case> {
    let mut all = containers::cases();
    all.extend(survival::cases());
    all.extend(interrupted::cases());
    all.extend(stacks::cases());
    all
}

const IMAGE: &str = "example/program:1";
/// The same, with a user.
const WEB_IMAGE: &str = "example/web:1";
const PROGRAM: &str = "/program";

/// A runtime with its own folder and its own cgroup. All of it goes when this does, also after a failure.
pub(crate) struct Oci {
    folder: Utf8PathBuf,
    cgroup: String,
    network: Arc<dyn Network>,
    /// Removed with this; another's is not.
    own: Option<tempfile::TempDir>,
}

impl Oci {
    pub(crate) fn new() -> Self {
        Self::with_network(Arc::new(Loopback))
    }

    pub(crate) fn with_network(network: Arc<dyn Network>) -> Self {
        let own = tempfile::tempdir().unwrap();
        Self {
            folder: Utf8PathBuf::from_path_buf(own.path().to_owned()).unwrap(),
            cgroup: format!("transom-test-{}", uuid::Uuid::new_v4().simple()),
            network,
            own: Some(own),
        }
    }

    /// The same machine as another process has it.
    pub(crate) fn sharing(folder: &Utf8Path, cgroup: &str) -> Self {
        Self {
            folder: folder.to_owned(),
            cgroup: cgroup.to_owned(),
            network: Arc::new(Loopback),
            own: None,
        }
    }

    pub(crate) fn cgroup(&self) -> &str {
        &self.cgroup
    }

    pub(crate) fn images(&self) -> Arc<Images> {
        let platform = Platform {
            os: "linux".to_owned(),
            architecture: "amd64".to_owned(),
            os_version: None,
        };
        let root = self.folder().join("images");
        let images = Images::open(
            &root,
            platform,
            Registries::default(),
            Arc::new(LinuxUnpacker),
        )
        .unwrap();
        if images.find(IMAGE).is_none() {
            build(&images);
        }
        images
    }

    pub(crate) fn settings(&self) -> OciSettings {
        let own = std::env::current_exe().unwrap();
        OciSettings {
            state: self.folder().join("state"),
            shim: vec![own.to_str().unwrap().to_owned(), "oci-shim".to_owned()],
            cgroup: self.cgroup.clone(),
        }
    }

    pub(crate) async fn runtime(&self) -> OciHandle {
        OciHandle(
            OciRuntime::open(&self.settings(), self.images(), Arc::clone(&self.network))
                .await
                .unwrap(),
        )
    }
}

fn build(images: &Images) {
    let file = |path: &str, text: &str| BuildFile {
        path: path.to_owned(),
        kind: BuildKind::Content(text.as_bytes().to_vec()),
        mode: 0o644,
    };
    let folder = |path: &str, mode| BuildFile {
        path: path.to_owned(),
        kind: BuildKind::Folder,
        mode,
    };
    let mut files = vec![
        file(
            "etc/passwd",
            "root:x:0:0::/root:/bin/sh\nweb:x:33:34::/:/bin/false\n",
        ),
        file("etc/group", "root:x:0:\nweb:x:34:\nextra:x:50:web\n"),
        folder("tmp", 0o1777),
        folder("usr", 0o755),
    ];
    for name in ["bin", "lib", "lib64"] {
        files.push(BuildFile {
            path: name.to_owned(),
            kind: BuildKind::Link(format!("usr/{name}")),
            mode: 0o777,
        });
    }
    let settings = ImageSettings {
        environment: vec!["FROM_IMAGE=yes".to_owned()],
        entrypoint: vec!["/bin/sh".to_owned()],
        ..ImageSettings::default()
    };
    images
        .build(IMAGE, &files, &settings, Timestamp::now())
        .unwrap();
    let settings = ImageSettings {
        user: "web".to_owned(),
        ..settings
    };
    images
        .build(WEB_IMAGE, &files, &settings, Timestamp::now())
        .unwrap();
}

fn mount(from: &str, to: &str) -> Mount {
    Mount {
        host_path: Utf8PathBuf::from(from),
        container_path: to.to_owned(),
        read_only: true,
        propagation: Propagation::Private,
    }
}

impl Backend for Oci {
    fn open(&self) -> BoxFuture<'_, Arc<dyn Runtime>> {
        Box::pin(async { Arc::new(self.runtime().await) as Arc<dyn Runtime> })
    }

    fn folder(&self) -> &Utf8Path {
        &self.folder
    }

    fn image(&self) -> String {
        IMAGE.to_owned()
    }

    fn command(&self, role: &Role) -> Vec<String> {
        if matches!(role, Role::Missing) {
            return vec!["/no/such/program".to_owned()];
        }
        std::iter::once(PROGRAM.to_owned())
            .chain(role.words())
            .collect()
    }

    /// The first process of a namespace is not killed by a signal that it does not handle.
    fn can(&self, ability: Ability) -> bool {
        ability == Ability::Terminal
    }

    fn container(&self, name: &str, role: &Role) -> ContainerSpec {
        let own = std::env::current_exe().unwrap();
        ContainerSpec {
            // The test's own binary, and the libraries it needs.
            mounts: vec![mount("/usr", "/usr"), mount(own.to_str().unwrap(), PROGRAM)],
            ..backend::container(self, name, role)
        }
    }
}

impl Drop for Oci {
    fn drop(&mut self) {
        if self.own.is_some() {
            remove_cgroups(&self.cgroup);
        }
    }
}
