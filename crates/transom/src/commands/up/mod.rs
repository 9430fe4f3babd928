//! `transom up` and `transom down`: a whole cluster on this machine, and nothing of it left afterwards.
//!
//! `up` starts the cluster as a process of its own and waits until it works; `down` asks that process to end,
//! takes the pods away and removes the folder. Both may be given again at any moment: what is there is found.

mod background;
mod demo;
mod down;
mod foreground;
mod hello;
mod place;

use std::net::SocketAddr;
use std::time::Duration;

use camino::Utf8PathBuf;
use jiff::SignedDuration;

pub(super) use down::Down;
pub(super) use hello::Hello;
use place::PlaceArguments;
pub(crate) use place::usual_kubeconfig;

use crate::context::Context;
use crate::failure::Exit;
use crate::node::{self, Choice};

const EXAMPLES: &str = "\
Examples:
  transom up                        A cluster of this machine, with something to look at
  transom up --no-demo              An empty one
  transom up --listen 0.0.0.0:6443  One that other machines can join
  transom up --foreground           Until Ctrl-C, with the log on the terminal
  transom down                      Everything away again";

/// Start a cluster on this machine: API, scheduler, controllers and a node
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Up {
    #[command(flatten)]
    place: PlaceArguments,

    /// Address and port of the API; port 0 lets the system choose
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6443")]
    listen: SocketAddr,

    /// Address and port where the API server asks the node for logs and shells; port 0 lets the system choose
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:10250")]
    agent_listen: SocketAddr,

    /// The name of the node, instead of the host name
    #[arg(long, value_name = "NAME")]
    node_name: Option<String>,

    /// What runs the pods [default: oci for root on Linux, else process]
    #[arg(long, value_name = "RUNTIME")]
    runtime: Option<Choice>,

    /// A file with mirrors, passwords and certificates of registries, for the runtime oci
    #[arg(long, value_name = "FILE")]
    registries: Option<Utf8PathBuf>,

    /// Start with no deployment
    #[arg(long)]
    no_demo: bool,

    /// Address and port of the demonstration; port 0 lets the system choose
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    demo_listen: SocketAddr,

    /// Stay, with the log on stderr, until Ctrl-C
    #[arg(long)]
    foreground: bool,

    /// How long to wait until everything works
    #[arg(long, value_name = "TIME", default_value = "2m")]
    timeout: SignedDuration,
}

impl Up {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let timeout = Duration::try_from(self.timeout).unwrap_or_default();
        let place = self.place.resolve(cx)?;
        let runtime = self.runtime.unwrap_or_else(|| Choice::usual(cx.host));
        let node_name = match self.node_name {
            Some(name) => name,
            None => node::usual_name()?,
        };
        let wanted = foreground::Wanted {
            listen: self.listen,
            agent_listen: self.agent_listen,
            node_name,
            runtime,
            // The cluster may be started in another folder.
            registries: self.registries.map(camino::absolute_utf8).transpose()?,
            demo: (!self.no_demo).then_some(self.demo_listen),
        };
        if self.foreground {
            foreground::run(cx, &place, wanted)
        } else {
            background::run(cx, &place, &wanted, timeout)
        }
    }
}
