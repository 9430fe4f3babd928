//! The parts of a simulation, one after the other. Invariant: each is over when the cluster is as it was wished, or
//! fails when its time is over; none ends because of the clock alone but churn.

mod churn;
mod join;
mod loss;
mod make;
mod upgrade;

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::chance::Chance;
use crate::fault::Fault;
use crate::hollow::{Hollow, Manners};
use crate::ledger::Counts;
use crate::plan::{Plan, Upgrade};
use crate::report::{Phase, Report, Settings};
use crate::sample::{Samples, memory};
use crate::{Audience, Options};

/// Requests of ours that are under way at once.
const AT_ONCE: usize = 64;

/// What all phases need.
struct Session<'a> {
    client: Client,
    options: Options,
    plan: Plan,
    hollow: Arc<Hollow>,
    audience: &'a dyn Audience,
    begun: Instant,
    phases: Vec<Phase>,
}

/// A phase that goes on.
struct Current {
    name: &'static str,
    begun: Instant,
    until: Instant,
}

pub(crate) async fn run(
    client: Client,
    options: Options,
    plan: Plan,
    audience: &dyn Audience,
    stop: CancellationToken,
) -> Result<Report, Fault> {
    let settings = Settings {
        grace_seconds: options.grace.as_secs_f64(),
        tolerate_seconds: options.tolerate.as_secs(),
        start_seconds: options.start.as_secs_f64(),
    };
    let mut report = Report::new(&options.wishes, &plan, settings);
    let manners = Manners {
        grace: options.grace,
        start: options.start,
        end: options.end,
    };
    let hollow = Hollow::new(client.clone(), plan.nodes.clone(), manners);
    let end = stop.child_token();
    let nodes = tokio::spawn(Arc::clone(&hollow).run(end.clone()));
    let begun = Instant::now();
    let samples = Samples::default();
    let mut session = Session {
        client,
        options,
        plan,
        hollow: Arc::clone(&hollow),
        audience,
        begun,
        phases: Vec::new(),
    };
    let ran = tokio::select! {
        ran = session.all() => ran,
        () = samples.keep(&hollow.ledger, begun) => Err(Fault::Stopped),
        () = stop.cancelled() => Err(Fault::Stopped),
    };
    end.cancel();
    if let Err(error) = nodes.await {
        tracing::error!(%error, "the hollow nodes failed");
    }
    ran?;
    report.phases = session.phases;
    report.samples = samples.take();
    Ok(report)
}

impl Session<'_> {
    async fn all(&mut self) -> Result<(), Fault> {
        self.join().await?;
        self.make().await?;
        let wishes = &self.options.wishes;
        let (churns, upgrade) = (
            wishes.churn_rate > 0 && wishes.churn_seconds > 0,
            wishes.upgrade,
        );
        if churns {
            let chance = Chance::new(wishes.seed.wrapping_add(1));
            self.churn(chance).await?;
        }
        if !self.plan.lost.is_empty() {
            self.lose().await?;
        }
        match upgrade {
            Upgrade::Rollout => self.roll_out().await,
            Upgrade::Drain => self.drain().await,
            Upgrade::None => Ok(()),
        }
    }

    fn begin(&self, name: &'static str, wanted: usize) -> Current {
        self.audience.begin(name, wanted);
        // What belongs to nobody is not the next one's.
        self.hollow.ledger.take_times();
        let begun = Instant::now();
        Current {
            name,
            begun,
            until: begun + self.options.limit,
        }
    }

    fn end(&mut self, phase: &Current, what: &'static str, count: usize) {
        let times = self.hollow.ledger.take_times();
        let to_last_bound = times.last_bound.map(|last| last - phase.begun);
        let phase = Phase::new(
            phase.name,
            (what, count),
            (phase.begun - self.begun, phase.begun.elapsed()),
            (times, to_last_bound),
            memory(),
        );
        self.audience.end(&phase);
        self.phases.push(phase);
    }

    /// Waits until `wanted` pods are as far as `read` says and nothing is left over.
    async fn until(
        &self,
        phase: &Current,
        (what, wanted): (&'static str, usize),
        read: impl Fn(Counts) -> usize,
    ) -> Result<(), Fault> {
        let mut counts = self.hollow.ledger.follow();
        let reached = counts.wait_for(|counts| {
            let reached = read(*counts);
            self.audience.reached(reached);
            reached == wanted && counts.pods == self.options.wishes.pods
        });
        match timeout_at(phase.until, reached).await {
            // The sender is in the ledger, which is there as long as we are.
            Ok(_) => Ok(()),
            Err(_) => Err(self.late(phase, (what, wanted), read(self.hollow.ledger.counts()))),
        }
    }

    /// Waits until all pods run and none is on its way out.
    async fn until_whole(&self, phase: &Current) -> Result<(), Fault> {
        let pods = self.options.wishes.pods;
        let mut counts = self.hollow.ledger.follow();
        let whole = counts
            .wait_for(|counts| counts.pods == pods && counts.running == pods && counts.going == 0);
        match timeout_at(phase.until, whole).await {
            Ok(_) => Ok(()),
            Err(_) => {
                let running = self.hollow.ledger.counts().running;
                Err(self.late(phase, ("pods run", pods), running))
            }
        }
    }

    fn late(
        &self,
        phase: &Current,
        (what, wanted): (&'static str, usize),
        reached: usize,
    ) -> Fault {
        Fault::Late {
            phase: phase.name,
            limit: self.options.limit,
            reached,
            wanted,
            what,
        }
    }

    /// Waits until so many nodes take pods.
    async fn until_untainted(&self, phase: &Current, wanted: usize) -> Result<(), Fault> {
        let mut count = self.hollow.follow_untainted();
        let reached = count.wait_for(|count| {
            self.audience.reached(*count);
            *count == wanted
        });
        match timeout_at(phase.until, reached).await {
            Ok(_) => Ok(()),
            Err(_) => {
                let reached = *self.hollow.follow_untainted().borrow();
                Err(self.late(phase, ("nodes take pods", wanted), reached))
            }
        }
    }

    fn tolerate(&self) -> Duration {
        self.options.tolerate
    }
}
