//! `cargo xtask up`: from a checkout to a running cluster of this machine, by the program that was built, with its files
//! below the cache folder. Running it again replaces the cluster by one of what was built, with the same objects.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::console;
use crate::run;
use crate::workspace::Workspace;

/// Build Transom, show what this machine can do, and run a cluster with something to look at
#[derive(Debug, clap::Args)]
pub(crate) struct Up {
    /// Build with optimizations
    #[arg(long)]
    release: bool,
    /// More for `transom up`, such as `-- --listen 0.0.0.0:6443`
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<String>,
}

impl Up {
    pub(crate) fn run(self, workspace: &Workspace) -> Result<()> {
        console::heading("build");
        let mut build = workspace.cargo();
        build.args(["build", "--package", "transom"]);
        if self.release {
            build.arg("--release");
        }
        run::visibly(&mut build)?;
        let cluster = Cluster {
            transom: if self.release {
                workspace.target.join("release/transom")
            } else {
                workspace.transom()
            },
            folder: workspace.target.join("up"),
        };

        console::heading("what this machine can do");
        run::visibly(workspace.command(&cluster.transom).arg("doctor"))?;

        console::heading("a cluster of this machine");
        // The one that runs may be of a program that is not there any more.
        run::visibly(cluster.command("down").arg("--keep-data"))?;
        run::visibly(cluster.command("up").args(&self.options))?;

        console::heading("next");
        let transom = cluster.transom.display();
        let folder = cluster.folder.display();
        console::line(&format!(
            "  export KUBECONFIG={folder}/server/admin.kubeconfig"
        ));
        console::line(&format!("  {transom} get pods"));
        console::line(&format!("  {transom} down --data-dir {folder}"));
        console::line("  cargo xtask test");
        Ok(())
    }
}

/// The cluster of a checkout: everything below one folder.
struct Cluster {
    transom: PathBuf,
    folder: PathBuf,
}

impl Cluster {
    fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(&self.transom);
        command.arg(verb).arg("--data-dir").arg(&self.folder);
        command
    }
}
