//! `transom agent install`, `uninstall`: the agent as a service of the system.
//!
//! Invariant: the token is in a file that only its owner reads, never in what is registered.

use camino::{Utf8Path, Utf8PathBuf};
use transom_agent::join::{Folder, JoinToken, Purpose};
use transom_host::files::{self, Access, Files};
use transom_host::service::Registration;
use transom_model::Os;

use super::run::{Flags, NAME};
use crate::commands::registration::{self, Role, Words};
use crate::context::Context;
use crate::failure::{Advice as _, Exit};
use crate::node;

/// Register the agent with the system, so that this machine is a node from boot on
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom agent install --server https://10.0.0.1:6443 --token-file token --now\n  transom agent install --server https://10.0.0.1:6443 --label rack=7 --dry-run\n\nA systemd unit on Linux, a service on Windows. Pods go on running while it is stopped or restarted.\nThe token is kept in a file that only its owner reads. Once more with other flags changes them."
)]
pub(super) struct Install {
    #[command(flatten)]
    flags: Flags,

    /// Start it now, too
    #[arg(long)]
    now: bool,

    /// Print what would be registered, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Take the registration of the agent away; pods go on running
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom agent uninstall\n  transom agent uninstall --purge\n\nWithout --purge pods, images and certificates stay, and a later agent takes them over."
)]
pub(super) struct Uninstall {
    /// Stop all pods, and remove them, their logs, the images and the certificates; what containerd or Docker runs stays
    /// there
    #[arg(long)]
    purge: bool,

    /// The folder of certificates, pods and images
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<Utf8PathBuf>,

    /// Print what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// What an installation does, decided.
struct Plan {
    registration: Registration,
    /// Where the token goes, if there is one.
    token: Option<(Utf8PathBuf, JoinToken)>,
}

/// Where an agent is installed.
struct Place<'a> {
    os: Os,
    program: Utf8PathBuf,
    data: &'a Utf8Path,
    /// The options that say where things are.
    options: Vec<String>,
}

fn plan(flags: &Flags, place: Place<'_>, token: Option<JoinToken>) -> anyhow::Result<Plan> {
    let token = token.map(|token| (node::token_file(place.os, place.data), token));
    let mut arguments = vec!["agent".to_owned(), "--registered".to_owned()];
    arguments.extend(place.options);
    arguments.extend(flags.words()?);
    let mut words = Words::default();
    words.add(
        "--token-file",
        token.iter().map(|(path, _)| path.to_string()),
    );
    arguments.extend(words.done());
    let role = Role {
        name: NAME,
        display: "Transom agent",
        description: "Runs the pods of this node",
    };
    Ok(Plan {
        registration: registration::registration(place.os, &role, place.program, arguments),
        token,
    })
}

impl Plan {
    fn render(&self, os: Os) -> String {
        let mut text = String::new();
        if let Some((path, _)) = &self.token {
            text = format!("# the token goes to `{path}`, which only its owner reads\n");
        }
        text + &registration::render(os, &self.registration)
    }

    /// Puts the token where the agent finds it.
    fn keep_token(&self, files: &dyn Files) -> anyhow::Result<()> {
        if let Some((path, token)) = &self.token {
            if let Some(folder) = path.parent() {
                files.create_dir_all(folder)?;
            }
            files.write_durable(path, token.reveal().as_bytes(), Access::Secret)?;
        }
        Ok(())
    }
}

impl Install {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let data = camino::absolute_utf8(self.flags.data(cx))?;
        let mut words = Words::default();
        words.places(cx)?;
        let place = Place {
            os: cx.host,
            program: registration::own_program()?,
            data: &data,
            options: words.done(),
        };
        let token = self.flags.token(cx)?;
        let has_token = token.is_some();
        let plan = plan(&self.flags, place, token)?;
        if self.dry_run {
            cx.out.write(&plan.render(cx.host))?;
            return Ok(Exit::Success);
        }
        if !has_token && !has_joined(&data)? {
            let missing: anyhow::Result<Exit> = Err(anyhow::anyhow!(
                "this machine has no certificate of a cluster yet, and no token to get one"
            ));
            return missing
                .hint("run `transom token create` on a server, and give the token with --token-file or TRANSOM_TOKEN")
                .exit(Exit::Configuration);
        }
        let manager = registration::manager(
            "have your init or container run `transom agent` with the same options",
        )?;
        registration::close_folders(cx)?;
        plan.keep_token(&files::Native)?;
        registration::install(cx, &manager, &plan.registration, self.now)?;
        Ok(Exit::Success)
    }
}

fn has_joined(data: &Utf8Path) -> anyhow::Result<bool> {
    let files = std::sync::Arc::new(files::Native);
    let folder = Folder::prepare(files, &node::certificates(data))?;
    Ok(matches!(folder.credentials(Purpose::Client), Ok(Some(_))))
}

impl Uninstall {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let data = match &self.data_dir {
            Some(data) => camino::absolute_utf8(data)?,
            None => cx.layout.state.join("agent"),
        };
        let logs = cx.layout.logs.join("pods");
        let is_agents = node::is_agents(&files::Native, &data);
        if self.dry_run {
            let mut text = format!("the service {NAME} would be stopped and unregistered\n");
            if self.purge && is_agents {
                let more = format!(
                    "all pods would be stopped, and what the agent has in `{data}` and `{logs}` removed\n"
                );
                text.push_str(&more);
            }
            cx.out.write(&text)?;
            return Ok(Exit::Success);
        }
        registration::uninstall(cx, NAME)?;
        if !self.purge {
            return Ok(Exit::Success);
        }
        if !is_agents {
            cx.out.remark(&format!("no agent has anything in `{data}`"));
            return Ok(Exit::Success);
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(node::clear(&data))?;
        files::Native.remove_tree(&logs)?;
        node::remove(&files::Native, &data)?;
        cx.out.remark("pods, images and certificates are removed");
        Ok(Exit::Success)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use transom_host::files::fake::FakeFiles;
    use transom_host::service::ServiceManager as _;
    use transom_host::service::fake::FakeServices;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        install: Install,
    }

    const TOKEN: &str = "t1.0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0.abcdef.0123456789abcdef";

    fn planned(os: Os, words: &[&str]) -> Plan {
        let line = ["install", "--server=https://10.0.0.1:6443"];
        let line = Line::try_parse_from(line.iter().chain(words)).unwrap();
        let (program, data) = match os {
            Os::Linux => ("/usr/local/bin/transom", "/var/lib/transom/agent"),
            Os::Windows => (r"C:\Transom\transom.exe", r"C:\Transom\state\agent"),
        };
        let place = Place {
            os,
            program: program.into(),
            data: data.into(),
            options: Vec::new(),
        };
        plan(&line.install.flags, place, Some(TOKEN.parse().unwrap())).unwrap()
    }

    #[test]
    fn on_linux_an_agent_is_a_unit_that_leaves_its_pods_alone() {
        let plan = planned(
            Os::Linux,
            &[
                "--node-name=n1",
                "--runtime=process",
                "--label=rack=7",
                "--taint=gpu:NoSchedule",
                "--address=10.0.0.2",
            ],
        );
        insta::assert_snapshot!(plan.render(Os::Linux), @r#"
        # the token goes to `/var/lib/transom/agent/token`, which only its owner reads
        # /etc/systemd/system/transom-agent.service
        # Written by Transom: changes are lost with the next installation.
        [Unit]
        Description=Transom agent
        # Runs the pods of this node
        Wants=network-online.target
        After=network-online.target
        StartLimitIntervalSec=0

        [Service]
        Type=notify
        ExecStart="/usr/local/bin/transom" "agent" "--registered" "--server=https://10.0.0.1:6443/" "--node-name=n1" "--runtime=process" "--address=10.0.0.2" "--label=rack=7" "--taint=gpu:NoSchedule" "--token-file=/var/lib/transom/agent/token"
        Restart=on-failure
        RestartSec=1000ms
        RestartSteps=2
        RestartMaxDelaySec=30000ms
        KillMode=process
        Delegate=yes
        LimitNOFILE=1048576
        TasksMax=infinity

        [Install]
        WantedBy=multi-user.target

        [X-Transom]
        Name=transom-agent
        "#);
    }

    #[test]
    fn on_windows_an_agent_is_a_service_of_the_system() {
        let plan = planned(Os::Windows, &["--max-pods=20", "--listen=0.0.0.0:10260"]);
        insta::assert_snapshot!(plan.render(Os::Windows), @r#"
        # the token goes to `C:\Transom\state\agent\token`, which only its owner reads
        service transom-agent
          display name: Transom agent
          description: Runs the pods of this node
          command: "C:\Transom\transom.exe" "agent" "--registered" "--server=https://10.0.0.1:6443/" "--listen=0.0.0.0:10260" "--max-pods=20" "--token-file=C:\Transom\state\agent\token"
          starts: with the machine
          after: Tcpip, Afd
          account: LocalSystem
          when it fails: restarted after 1s, 5s, 30s
        "#);
    }

    #[test]
    fn the_token_is_only_in_a_file_of_its_own() {
        for os in [Os::Linux, Os::Windows] {
            let plan = planned(os, &[]);
            let secret = "0123456789abcdef";
            assert!(!plan.render(os).contains(secret));
            assert!(!format!("{:?}", plan.registration).contains(secret));
        }
        let files = FakeFiles::new(Os::Linux);
        let plan = planned(Os::Linux, &[]);
        plan.keep_token(&files).unwrap();
        let path = Utf8Path::new("/var/lib/transom/agent/token");
        assert_eq!(files.read(path, 1_000).unwrap(), TOKEN.as_bytes());
    }

    #[test]
    fn once_more_changes_what_is_registered() {
        let services = FakeServices::new();
        for words in [&[][..], &["--label=rack=7"], &["--label=rack=7"]] {
            let plan = planned(Os::Linux, words);
            services.install(&plan.registration).unwrap();
            assert_eq!(services.registration(NAME), Some(plan.registration));
        }
        assert_eq!(services.list_ours().unwrap(), [NAME]);
        services.uninstall(NAME).unwrap();
        services.uninstall(NAME).unwrap();
        assert!(services.list_ours().unwrap().is_empty());
    }

    #[test]
    fn what_is_registered_can_be_parsed_again() {
        #[derive(Parser)]
        struct Again {
            #[command(flatten)]
            run: super::super::run::Run,
        }
        let plan = planned(
            Os::Linux,
            &[
                "--taint=a=b:NoExecute",
                "--label=x=y=z",
                "--static-pods=/srv/pods",
            ],
        );
        let again = Again::try_parse_from(&plan.registration.arguments).unwrap();
        let words = again.run.flags().words().unwrap();
        let before = &plan.registration.arguments;
        // All but the command, the mark of the manager, and the token.
        assert_eq!(words, before[2..before.len() - 1]);
    }
}
