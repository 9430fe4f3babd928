//! The scheduler through the API, with hollow nodes: pods a second against what we hold ourselves to. Upstream's own
//! gate for the like is 270.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::{Gauge, Stage};
use crate::run;

const NODES: &str = "5000";
const PODS: u32 = 10_000;
/// Pods a second.
const WANTED: u32 = 2_000;

pub(super) const BIND: Gauge = Gauge {
    name: "10,000 pods bound on 5,000 hollow nodes",
    peer: "2,000 pods a second",
    allowed: Duration::from_secs((PODS / WANTED) as u64),
    rounds: 3,
    measure: |stage| bind(stage),
};

/// From the first request to the last pod that got a node.
fn bind(stage: &Stage<'_>) -> Result<Duration> {
    let mut simulate = stage.transom();
    simulate
        .args(["simulate", "--nodes", NODES, "--windows", "30%"])
        .args([
            "--pods",
            &PODS.to_string(),
            "--make",
            "pods",
            "--churn",
            "0",
        ])
        .args(["--output", "json", "--data-dir"])
        .arg(stage.fresh("simulation")?);
    let report: Value = serde_json::from_str(&run::output(&mut simulate)?)?;
    seconds(&report).context("the report of the simulation is not as expected")
}

fn seconds(report: &Value) -> Option<Duration> {
    let phases = report["phases"].as_array()?;
    let create = phases.iter().find(|phase| phase["name"] == "create")?;
    let rate = create["boundPerSecond"].as_f64()?;
    Duration::try_from_secs_f64(f64::from(PODS) / rate).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_time_follows_from_the_rate() {
        let report = |rate: f64| json!({"phases": [{"name": "create", "boundPerSecond": rate}]});
        assert_eq!(seconds(&report(2000.0)), Some(BIND.allowed));
        assert_eq!(seconds(&report(0.0)), None);
        assert_eq!(seconds(&json!({})), None);
    }
}
