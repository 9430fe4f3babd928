//! One host of a lab. Its disk lasts as long as the lab; everything else of it (processes, `/run`,
//! links) lasts from a start to the next stop.

mod boot;
pub(crate) mod census;
mod command;
mod files;
mod running;

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use fs_err as fs;
use transom_model::os::Os;

pub use census::Process;
pub use command::{HostCommand, Output};
pub use running::Running;

use crate::http::{self, Response};
use crate::init::Init;
use crate::lab::{Ground, lock};
use crate::namespaces::{Namespaces, Scope};
use crate::wine::Wine;
use crate::{eventually, network};

/// How long a single try to connect may take.
const CONNECT: Duration = Duration::from_millis(500);

/// A machine of the lab. Copies are handles of the same host.
#[derive(Debug, Clone)]
pub struct Host {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    ground: Arc<Ground>,
    name: String,
    address: Ipv4Addr,
    /// Present on Windows hosts.
    wine: Option<Wine>,
    state: Mutex<State>,
    /// Every program that was started here, for logs and to collect what is left of it.
    started: Mutex<Vec<Running>>,
}

#[derive(Debug)]
struct State {
    /// Present while the host is on.
    power: Option<Power>,
    /// Whether its cable is plugged in; stays as it is over a stop.
    attached: bool,
    /// Processes that were told to stand still.
    paused: Vec<u32>,
}

#[derive(Debug)]
struct Power {
    init: Init,
    /// The root folder with everything that is mounted in it.
    root: fs::File,
}

impl Host {
    /// Makes the disk of a host that is off.
    pub(crate) fn new(
        ground: Arc<Ground>,
        name: &str,
        address: Ipv4Addr,
        wine: Option<Wine>,
    ) -> Result<Self> {
        boot::make_disk(&ground, name, wine.as_ref())?;
        let state = State {
            power: None,
            attached: true,
            paused: Vec::new(),
        };
        let inner = Inner {
            ground,
            name: name.to_owned(),
            address,
            wine,
            state: Mutex::new(state),
            started: Mutex::default(),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    pub fn name(&self) -> &str {
        &self.inner.name
    }

    pub fn address(&self) -> Ipv4Addr {
        self.inner.address
    }

    pub fn os(&self) -> Os {
        if self.inner.wine.is_some() {
            Os::Windows
        } else {
            Os::Linux
        }
    }

    /// Turns the host on, with its disk as it was. A Windows host has booted when this returns.
    pub fn start(&self) -> Result<()> {
        let inner = &self.inner;
        {
            let mut state = lock(&inner.state);
            ensure!(state.power.is_none(), "host `{}` is on", inner.name);
            let (init, root) = boot::boot(&inner.ground, &inner.name)?;
            let switch = inner.ground.namespaces()?;
            let subnet = inner.ground.subnet;
            network::connect(
                &switch,
                &init.namespaces,
                init.wrapper(),
                subnet,
                inner.address,
            )?;
            if !state.attached {
                network::set_link(&switch, inner.address, false)?;
            }
            state.power = Some(Power { init, root });
        }
        if inner.wine.is_some() {
            boot::log_on(self)
        } else {
            Ok(())
        }
    }

    /// Turns the host off at once, as a power cut does: only its disk remains. The registry of a
    /// Windows host is on it.
    pub fn stop(&self) -> Result<()> {
        let mut state = lock(&self.inner.state);
        let power = state.power.take().with_context(|| self.is_off())?;
        state.paused.clear();
        if self.inner.wine.is_some() {
            boot::write_registry(&power.init.namespaces)?;
        }
        // Held until the cable is away: the kernel takes it away by itself, but at its own time, and
        // it could still be in the way of the next start.
        let _namespaces = Arc::clone(&power.init.namespaces);
        power.init.destroy(|| self.reap_programs())?;
        network::disconnect(&*self.inner.ground.namespaces()?, self.address())
    }

    /// Pulls the host's cable: it and the others cannot reach each other any more.
    pub fn cut_off(&self) -> Result<()> {
        self.set_attached(false)
    }

    /// Plugs the host's cable in again.
    pub fn rejoin(&self) -> Result<()> {
        self.set_attached(true)
    }

    /// Makes every process of the host stand still; its network stays.
    pub fn pause(&self) -> Result<()> {
        let namespaces = self.namespaces()?;
        let mut state = lock(&self.inner.state);
        // What is being forked right now may be missed by one look, not by one that finds nothing.
        eventually(
            "all processes of the host to stand still",
            Duration::from_mins(1),
            || {
                let moving: Vec<u32> = census::members(&namespaces)?
                    .into_iter()
                    .filter(|process| !process.stopped && !process.ended)
                    .map(|process| process.id)
                    .collect();
                for &id in &moving {
                    census::signal(id, nix::sys::signal::Signal::SIGSTOP)?;
                    state.paused.push(id);
                }
                ensure!(moving.is_empty(), "{} processes still moved", moving.len());
                Ok(())
            },
        )
    }

    /// Lets the processes that [`Host::pause`] stopped go on.
    pub fn resume(&self) -> Result<()> {
        let namespaces = self.namespaces()?;
        let mut state = lock(&self.inner.state);
        let paused = std::mem::take(&mut state.paused);
        for process in census::members(&namespaces)? {
            if paused.contains(&process.id) {
                census::signal(process.id, nix::sys::signal::Signal::SIGCONT)?;
            }
        }
        Ok(())
    }

    /// Every process of the host except its first, which belongs to the testkit. Containers' too.
    pub fn processes(&self) -> Result<Vec<Process>> {
        let mut processes = census::members(&*self.namespaces()?)?;
        processes.retain(|process| process.host_id != 1);
        Ok(processes)
    }

    /// Gets `url` from inside of the host; host names are looked up in its `/etc/hosts`.
    pub fn http_get(&self, url: &str) -> Result<Response> {
        let hosts = self.read_text("/etc/hosts")?;
        self.namespaces()?.enter(Scope::Network, || {
            http::get(url, |name| {
                let line = hosts
                    .lines()
                    .find(|line| line.split(' ').skip(1).any(|it| it == name));
                let address = line.and_then(|line| line.split(' ').next());
                address
                    .and_then(|address| address.parse().ok())
                    .with_context(|| format!("host `{}` does not know `{name}`", self.name()))
            })
        })
    }

    /// Waits until a program of the host accepts connections on `port`.
    pub fn wait_for_tcp(&self, port: u16, timeout: Duration) -> Result<()> {
        let namespaces = self.namespaces()?;
        eventually(
            &format!("port {port} of host `{}`", self.name()),
            timeout,
            || {
                namespaces.enter(Scope::Network, || {
                    let connect = |address| {
                        TcpStream::connect_timeout(&SocketAddr::from((address, port)), CONNECT)
                    };
                    connect(self.address()).or_else(|_| connect(Ipv4Addr::LOCALHOST))?;
                    Ok(())
                })
            },
        )
    }

    /// The state of the host and the last lines of everything that ran on it.
    pub(crate) fn report(&self) -> String {
        let mut text = format!("== host `{}` {}: ", self.name(), self.address());
        let on = lock(&self.inner.state).power.is_some();
        let _ = match (on, self.processes()) {
            (false, _) => writeln!(text, "off"),
            (true, Err(error)) => writeln!(text, "on, but: {error:#}"),
            (true, Ok(processes)) => {
                let _ = writeln!(text, "on, {} processes", processes.len());
                processes
                    .iter()
                    .try_for_each(|process| writeln!(text, "   {process}"))
            }
        };
        for running in lock(&self.inner.started).iter() {
            let _ = write!(text, "{}", running.report());
        }
        text
    }

    /// Collects the exit status of whatever has ended, while the whole lab is ending.
    pub(crate) fn reap(&self) {
        if let Some(power) = &mut lock(&self.inner.state).power {
            power.init.reap();
        }
        self.reap_programs();
    }

    /// Collects the exit status of every program that has ended.
    fn reap_programs(&self) {
        for running in lock(&self.inner.started).iter() {
            running.reap();
        }
    }

    /// Lets go of everything that this process holds of the host, after the lab has ended.
    pub(crate) fn forget(&self) {
        lock(&self.inner.state).power = None;
    }

    fn namespaces(&self) -> Result<Arc<Namespaces>> {
        let state = lock(&self.inner.state);
        let power = state.power.as_ref().with_context(|| self.is_off())?;
        Ok(Arc::clone(&power.init.namespaces))
    }

    fn set_attached(&self, attached: bool) -> Result<()> {
        let mut state = lock(&self.inner.state);
        if state.power.is_some() {
            let switch = self.inner.ground.namespaces()?;
            network::set_link(&switch, self.address(), attached)?;
        }
        state.attached = attached;
        Ok(())
    }

    fn is_off(&self) -> String {
        format!("host `{}` is off", self.name())
    }
}
