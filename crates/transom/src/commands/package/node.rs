//! The node that a command works on: where its software is, and who looks after its services. The options
//! are pkgpanda's, so that scripts for it go on working.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};
use transom_host::files::path;
use transom_host::{account, files, process};
use transom_model::Os;
use transom_package::node::{
    CheckRunner, Gate, Node, NodeError, Places, Recovery, Services, Session, SwitchReport,
    Switching,
};

use super::services;
use crate::context::Context;
use crate::failure::{Advice as _, Exit};

/// How long one check of a package may take.
const CHECK_LIMIT: Duration = Duration::from_mins(1);

/// Between two attempts of the checks after a switch.
const CHECK_PAUSE: Duration = Duration::from_secs(1);

/// What a check sees of our own environment: what programs need to find the system.
const INHERITED: [&str; 6] = [
    "PATH",
    "LANG",
    "SystemRoot",
    "SystemDrive",
    "TEMP",
    "ComSpec",
];

/// Options that say where a node's software is.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct NodeOptions {
    /// The folder of the node's software [default: /opt/transom, C:\Transom\opt]
    #[arg(long, value_name = "DIR")]
    pub(super) root: Option<Utf8PathBuf>,

    /// The folder of unpacked packages [default: packages below the root]
    #[arg(long, value_name = "DIR")]
    repository: Option<Utf8PathBuf>,

    /// The folder with roles and setup flags
    #[arg(long, value_name = "DIR")]
    config_dir: Option<Utf8PathBuf>,

    /// The folder below which packages keep their state
    #[arg(long, value_name = "DIR")]
    state_dir_root: Option<Utf8PathBuf>,

    /// Put unit files below the root instead of where the system looks for them
    #[arg(long)]
    rooted_systemd: bool,

    /// Neither stop nor start services
    #[arg(long)]
    pub(super) no_systemd: bool,

    /// Do not wait until services have come up
    #[arg(long)]
    no_block_systemd: bool,

    /// Print nothing but data and errors
    #[arg(long, hide = true)]
    silent: bool,

    /// The places are those of DC/OS: set by the name `pkgpanda`, not by people.
    #[arg(skip)]
    pub(super) familiar: bool,
}

/// Options of whatever switches generations.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct SwitchOptions {
    /// Say what would change, and change nothing
    #[arg(long)]
    pub(super) dry_run: bool,

    /// How long services and checks may take to prove the new generation healthy
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    check_timeout: u64,

    /// Stay with the new generation even if it does not prove healthy
    #[arg(long)]
    no_rollback: bool,
}

impl NodeOptions {
    /// The places, all of them absolute.
    pub(super) fn places(&self, cx: &Context) -> anyhow::Result<Places> {
        let os = cx.host;
        let or = |given: &Option<Utf8PathBuf>, default: Utf8PathBuf| match given {
            Some(path) => absolute(path),
            None => Ok(default),
        };
        let usual = if self.familiar {
            familiar(os, cx)
        } else {
            [&cx.layout.software, &cx.layout.config, &cx.layout.state].map(Clone::clone)
        };
        let [software, config, state] = usual;
        let root = or(&self.root, software)?;
        let units = match cx.layout.units.first() {
            Some(folder) if !self.rooted_systemd => folder.clone(),
            _ => root.clone(),
        };
        let mut places = Places::new(
            os,
            root,
            or(&self.config_dir, config)?,
            or(&self.state_dir_root, state)?,
            units,
        );
        places.repository = or(&self.repository, places.repository.clone())?;
        Ok(places)
    }

    pub(super) fn open(&self, cx: &Context) -> anyhow::Result<Node> {
        let node = Node::open(
            Arc::new(files::Native),
            Arc::<account::Native>::default(),
            self.places(cx)?,
        )?;
        Ok(node)
    }

    /// Who looks after the services.
    pub(super) fn services(&self, cx: &Context) -> Box<dyn Services> {
        services::of_machine(
            cx,
            self.no_systemd || self.rooted_systemd,
            self.no_block_systemd,
        )
    }

    /// Whether what is said beside data is wanted.
    pub(super) fn remark(&self, cx: &Context, text: &str) {
        if !self.silent {
            cx.out.remark(text);
        }
    }

    /// Begins to change the node, and says what an earlier command had left.
    pub(super) fn begin<'n>(
        &self,
        cx: &Context,
        node: &'n Node,
        services: &dyn Services,
    ) -> anyhow::Result<Session<'n>> {
        let (session, recovery) = advised(node.begin(services))?;
        self.tell(cx, &recovery);
        Ok(session)
    }

    /// Says what a recovery did.
    pub(super) fn tell(&self, cx: &Context, recovery: &Recovery) {
        if recovery.uninstalled {
            self.remark(cx, "an uninstallation that had begun was ended");
        }
        if let Some(generation) = recovery.rolled_back {
            cx.out.warn(&format!(
                "generation {generation} had not proved healthy when its command ended: the one \
                 before it is active again"
            ));
        }
        for deviation in &recovery.repaired {
            self.remark(cx, &format!("repaired: {deviation}"));
        }
        for remark in &recovery.remarks {
            self.remark(cx, remark);
        }
    }

    /// Switches by `switch`, and prints how it ended.
    pub(super) fn switch(
        &self,
        cx: &Context,
        options: &SwitchOptions,
        services: &dyn Services,
        switch: impl FnOnce(&Switching<'_>) -> Result<SwitchReport, NodeError>,
    ) -> anyhow::Result<SwitchReport> {
        let checks = runner(cx);
        let is_gated = !options.no_rollback && !self.no_systemd && !self.no_block_systemd;
        let gate = is_gated.then_some(Gate {
            checks: &checks,
            limit: Duration::from_secs(options.check_timeout),
            pause: CHECK_PAUSE,
        });
        let _task = cx.progress.start("switching to the new generation");
        advised(switch(&Switching {
            now: cx.out.shown().now,
            services,
            gate,
            rebuild: false,
        }))
    }
}

/// Runs the checks of packages on this machine.
pub(super) fn runner(cx: &Context) -> CheckRunner<'static> {
    let all = cx.environment.all();
    let is_inherited = |name: &str| {
        INHERITED
            .iter()
            .any(|inherited| inherited.eq_ignore_ascii_case(name))
    };
    let environment: BTreeMap<String, String> = all
        .into_iter()
        .filter(|(name, _)| is_inherited(name))
        .collect();
    let system_root = environment
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("SystemRoot"))
        .map_or_else(|| r"C:\Windows".to_owned(), |(_, value)| value.clone());
    CheckRunner {
        files: &files::Native,
        processes: &process::Native,
        environment,
        limit: CHECK_LIMIT,
        system_root: system_root.into(),
    }
}

/// Adds the way forward to what a node refuses.
pub(super) fn advised<T>(outcome: Result<T, NodeError>) -> anyhow::Result<T> {
    let error = match outcome {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let hint = match &error {
        NodeError::NothingActive => "make packages active with `transom package activate`",
        NodeError::NoSuchGeneration { .. } | NodeError::NoPrevious => {
            "see which there are with `transom package generations`"
        }
        NodeError::Busy { .. } => "wait until the other command has ended",
        NodeError::NotEnoughSpace { .. } => "free some with `transom package gc`",
        NodeError::PackageActive { .. } => "make another set active first",
        NodeError::PackageKept { .. } => "collect old generations with `transom package gc`",
        NodeError::NotStopped { .. } => {
            "see the services with `transom service status`, or leave them alone with `--no-systemd`"
        }
        _ => return Err(error.into()),
    };
    Err(error).hint(hint)
}

/// Where DC/OS keeps software, configuration and state.
fn familiar(os: Os, cx: &Context) -> [Utf8PathBuf; 3] {
    let root = &cx.settings.root.value;
    ["opt/mesosphere", "etc/mesosphere", "var/lib/dcos"].map(|below| {
        below
            .split('/')
            .fold(root.clone(), |folder, name| path::join(os, &folder, name))
    })
}

pub(super) fn absolute(path: &Utf8Path) -> anyhow::Result<Utf8PathBuf> {
    camino::absolute_utf8(path)
        .with_context(|| format!("could not find out where {path} is"))
        .exit(Exit::Usage)
}
