//! Of several servers on one store, one does the work: the one that holds the lease.
//!
//! Whoever cannot renew stops before anybody else may begin: work is over when the lease has run out.

mod plan;

use std::{pin::pin, time::Duration};

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
    jiff::Timestamp,
};
use kube::{Api, Client, api::PostParams};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::plan::{RETRY, Turn, plan_release, plan_turn};
use crate::{
    fault::{Fault, ask, found},
    telemetry,
};

const NAMESPACE: &str = "kube-system";
/// How long one may fail to renew until it stops to lead.
const RENEW: Duration = Duration::from_secs(10);
/// How long one request may take: several must fit into the time to renew.
const REQUEST: Duration = Duration::from_secs(3);
/// How long work may take to end once it must. Together with the time to renew this is less than a lease lasts.
const FAREWELL: Duration = Duration::from_secs(3);

/// Does `work` whenever `identity` holds the lease `name`, until `stop`. The token that work is given is cancelled
/// when the lease is lost or all is to stop; work that does not end then is dropped.
pub async fn lead<W>(
    client: Client,
    name: &str,
    identity: &str,
    stop: &CancellationToken,
    work: impl Fn(CancellationToken) -> W,
) where
    W: Future<Output = ()>,
{
    let mut candidate = Candidate {
        leases: Api::namespaced(client, NAMESPACE),
        name,
        identity,
        seen: None,
    };
    telemetry::leads(name, false);
    while !stop.is_cancelled() {
        if !candidate.tries().await {
            // A stop ends the pause, and the loop with it.
            let _ = stop.run_until_cancelled(tokio::time::sleep(RETRY)).await;
            continue;
        }
        tracing::info!(lease = name, identity, "leads now");
        telemetry::leads(name, true);
        let term = stop.child_token();
        let mut working = pin!(work(term.clone()));
        let is_lost = tokio::select! {
            () = working.as_mut() => false,
            () = candidate.renews() => true,
        };
        telemetry::leads(name, false);
        if is_lost {
            tracing::warn!(lease = name, identity, "does not lead any more");
            term.cancel();
            if tokio::time::timeout(FAREWELL, working).await.is_err() {
                tracing::warn!(lease = name, "work was given up with the lease");
            }
        } else {
            candidate.releases().await;
        }
    }
}

struct Candidate<'a> {
    leases: Api<Lease>,
    name: &'a str,
    identity: &'a str,
    /// The lease as it was last, and since when it was so: clocks of others are not relied on.
    seen: Option<(LeaseSpec, Instant)>,
}

impl Candidate<'_> {
    /// Takes or renews the lease; tells whether it has it.
    async fn tries(&mut self) -> bool {
        match tokio::time::timeout(REQUEST, self.step()).await {
            Ok(Ok(has)) => has,
            Ok(Err(fault)) => {
                tracing::debug!(lease = self.name, %fault, "the lease could not be had");
                false
            }
            Err(_) => false,
        }
    }

    async fn step(&mut self) -> Result<bool, Fault> {
        let lease = found(ask(self.leases.get(self.name)).await)?;
        let spec = lease.as_ref().and_then(|lease| lease.spec.clone());
        let unchanged = self.unchanged(spec.as_ref());
        let now = Timestamp::now();
        let Turn::Take(wanted) = plan_turn(spec.as_ref(), self.identity, unchanged, now) else {
            return Ok(false);
        };
        let parameters = PostParams::default();
        let answer = match lease {
            Some(mut lease) => {
                lease.spec = Some(*wanted);
                ask(self.leases.replace(self.name, &parameters, &lease)).await
            }
            None => {
                let lease = Lease {
                    metadata: ObjectMeta {
                        name: Some(self.name.to_owned()),
                        ..ObjectMeta::default()
                    },
                    spec: Some(*wanted),
                };
                ask(self.leases.create(&parameters, &lease)).await
            }
        };
        match answer {
            Ok(_) => Ok(true),
            // Another one was faster.
            Err(fault) if fault.is_conflict() => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    /// How long a lease has been as it is.
    fn unchanged(&mut self, spec: Option<&LeaseSpec>) -> Duration {
        match (&self.seen, spec) {
            (Some((seen, since)), Some(spec)) if seen == spec => since.elapsed(),
            _ => {
                self.seen = spec.map(|spec| (spec.clone(), Instant::now()));
                Duration::ZERO
            }
        }
    }

    /// Keeps the lease; returns when it is lost.
    async fn renews(&mut self) {
        let mut renewed = Instant::now();
        while renewed.elapsed() < RENEW {
            tokio::time::sleep(RETRY).await;
            let asked = Instant::now();
            if self.tries().await {
                renewed = asked;
            }
        }
    }

    /// Lets go of the lease, so that another need not wait until it runs out.
    async fn releases(&mut self) {
        let release = async {
            let mut lease = ask(self.leases.get(self.name)).await?;
            let released = lease
                .spec
                .as_ref()
                .and_then(|spec| plan_release(spec, self.identity, Timestamp::now()));
            if let Some(released) = released {
                lease.spec = Some(released);
                let parameters = PostParams::default();
                ask(self.leases.replace(self.name, &parameters, &lease)).await?;
            }
            Ok::<(), Fault>(())
        };
        match tokio::time::timeout(REQUEST, release).await {
            Ok(Ok(())) => {}
            other => tracing::debug!(lease = self.name, ?other, "the lease runs out by itself"),
        }
    }
}
