//! What an agent says that its node and pods use: the kubelet's `/stats/summary`.
//!
//! Only what has both numbers counts; everything else in a summary is left unread.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value, json};

/// What something uses, at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) nanocores: u64,
    pub(super) bytes: u64,
    pub(super) time: String,
    /// Over which time the processors were looked at, in nanoseconds; only our own agents say it.
    pub(super) window: Option<u64>,
}

impl Usage {
    pub(super) fn to_value(&self) -> Value {
        json!({"cpu": cores(self.nanocores), "memory": memory(self.bytes)})
    }
}

/// The numbers of a node.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) node: Option<Usage>,
    /// By namespace and name: the containers.
    pub(super) pods: HashMap<String, Vec<(String, Usage)>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cpu {
    #[serde(default)]
    time: String,
    usage_nano_cores: Option<u64>,
    window_nano_seconds: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Memory {
    working_set_bytes: Option<u64>,
}

#[derive(Deserialize)]
struct Measured {
    #[serde(default)]
    name: String,
    cpu: Option<Cpu>,
    memory: Option<Memory>,
}

#[derive(Deserialize)]
struct PodReference {
    name: String,
    namespace: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pod {
    pod_ref: PodReference,
    #[serde(default)]
    containers: Vec<Measured>,
}

#[derive(Deserialize)]
struct Answer {
    node: Option<Measured>,
    #[serde(default)]
    pods: Vec<Pod>,
}

impl Measured {
    fn usage(&self) -> Option<Usage> {
        let cpu = self.cpu.as_ref()?;
        Some(Usage {
            nanocores: cpu.usage_nano_cores?,
            bytes: self.memory.as_ref()?.working_set_bytes?,
            time: cpu.time.clone(),
            window: cpu.window_nano_seconds,
        })
    }
}

impl Summary {
    pub(super) fn read(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let answer: Answer = serde_json::from_slice(bytes)?;
        let pods = answer.pods.into_iter().filter_map(|pod| {
            let containers: Vec<(String, Usage)> = pod
                .containers
                .into_iter()
                .filter_map(|container| Some((container.name.clone(), container.usage()?)))
                .collect();
            let key = format!("{}/{}", pod.pod_ref.namespace, pod.pod_ref.name);
            (!containers.is_empty()).then_some((key, containers))
        });
        Ok(Self {
            node: answer.node.and_then(|node| node.usage()),
            pods: pods.collect(),
        })
    }
}

/// A number with the largest unit that leaves it whole.
fn shortened(mut number: u64, step: u64, units: &[&str]) -> String {
    let mut unit = 0;
    while number > 0 && number.is_multiple_of(step) && unit + 1 < units.len() {
        number /= step;
        unit += 1;
    }
    format!("{number}{}", units[unit])
}

fn cores(nanocores: u64) -> String {
    if nanocores == 0 {
        return "0".to_owned();
    }
    shortened(nanocores, 1000, &["n", "u", "m", "", "k"])
}

fn memory(bytes: u64) -> String {
    shortened(bytes, 1024, &["", "Ki", "Mi", "Gi", "Ti", "Pi"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_of_a_kubelet_is_read() {
        let text = json!({
            "node": {"nodeName": "n1", "cpu": {"time": "2026-01-02T03:04:05Z", "usageNanoCores": 123_000_000, "usageCoreNanoSeconds": 1},
                "memory": {"workingSetBytes": 1_048_576, "rssBytes": 3}},
            "pods": [
                {"podRef": {"name": "web", "namespace": "shop", "uid": "u"}, "containers": [
                    {"name": "a", "cpu": {"time": "t", "usageNanoCores": 5}, "memory": {"workingSetBytes": 1000}},
                    {"name": "new", "cpu": {"time": "t"}, "memory": {}},
                ]},
                {"podRef": {"name": "young", "namespace": "shop", "uid": "v"}},
            ],
        });
        let summary = Summary::read(text.to_string().as_bytes()).unwrap();
        assert_eq!(
            summary.node.unwrap().to_value(),
            json!({"cpu": "123m", "memory": "1Mi"})
        );
        let pods: Vec<&String> = summary.pods.keys().collect();
        assert_eq!(pods, ["shop/web"]);
        let [(name, usage)] = summary.pods["shop/web"].as_slice() else {
            panic!("{:?}", summary.pods);
        };
        assert_eq!(name, "a");
        assert_eq!(usage.to_value(), json!({"cpu": "5n", "memory": "1000"}));
    }

    #[test]
    fn a_summary_of_something_else_is_refused() {
        for text in ["", "[]", "{\"pods\": [{}]}", "{\"node\": 7}"] {
            assert!(Summary::read(text.as_bytes()).is_err(), "{text}");
        }
        assert_eq!(Summary::read(b"{}").unwrap(), Summary::default());
    }

    #[test]
    fn amounts_have_the_largest_unit_that_fits() {
        assert_eq!(cores(0), "0");
        assert_eq!(cores(2_000_000_000), "2");
        assert_eq!(cores(1_500_000), "1500u");
        assert_eq!(memory(0), "0");
        assert_eq!(memory(3 << 30), "3Gi");
        assert_eq!(memory(1023), "1023");
    }
}
