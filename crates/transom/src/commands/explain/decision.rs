//! A decision about a pod, for people and for programs. Invariant: reasons are in the scheduler's own words, so that
//! they are found where events have them, too.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt as _;
use serde::Serialize;
use transom_model::labels;
use transom_scheduler::{DEFAULT_SCHEDULER, Image, Reason, Score, Text, Verdict};

use crate::output::{Cell, Document, Shown, render_table};

/// What is known about nodes and images beside what the scheduler keeps.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    systems: BTreeMap<String, String>,
    /// What images are for, in words.
    images: BTreeMap<String, String>,
}

impl Nodes {
    pub(super) fn put_node(&mut self, node: &Node) {
        let label = |name: &str| node.labels().get(name).map(String::as_str);
        let os = label(labels::OS).or_else(|| label(labels::OS_BETA));
        let arch = label(labels::ARCH).or_else(|| label(labels::ARCH_BETA));
        let build = label(labels::WINDOWS_BUILD).map(|build| format!("({build})"));
        let system = format!(
            "{}{}/{}",
            os.unwrap_or("unknown"),
            build.unwrap_or_default(),
            arch.unwrap_or("unknown")
        );
        self.systems.insert(node.name_any(), system);
    }

    pub(super) fn put_image(&mut self, image: Image) {
        if let Some(runs_on) = image.status.and_then(|status| status.runs_on) {
            self.images.insert(image.spec.reference, runs_on);
        }
    }

    /// A reason, and for an image what it is for.
    fn words(&self, reason: &Reason) -> String {
        let Reason::Platform { image } = reason else {
            return reason.to_string();
        };
        match self.images.get(&**image) {
            Some(platforms) => format!("{reason}, which is for {platforms}"),
            None => reason.to_string(),
        }
    }
}

/// What is decided about a pod.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Decision {
    namespace: String,
    pod: String,
    /// Where the pod is.
    node: Option<String>,
    /// Where it would be placed now.
    would_be_placed: Option<String>,
    /// Why it can be placed nowhere, in the words of its events.
    message: Option<String>,
    /// What keeps it from being placed whatever nodes there are.
    notes: Vec<String>,
    nodes: Vec<NodeVerdict>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeVerdict {
    node: String,
    system: String,
    possible: bool,
    score: Option<i64>,
    parts: Option<Parts>,
    reasons: Vec<String>,
}

/// What each part of a score gives.
#[derive(Debug, Serialize)]
struct Parts {
    taints: i64,
    affinity: i64,
    resources: i64,
    balance: i64,
    images: i64,
    spread: i64,
    neighbours: i64,
}

impl From<Score> for Parts {
    fn from(score: Score) -> Self {
        Self {
            taints: score.taints,
            affinity: score.affinity,
            resources: score.resources,
            balance: score.balance,
            images: score.images,
            spread: score.spread,
            neighbours: score.neighbours,
        }
    }
}

impl Parts {
    fn text(&self) -> String {
        let all = [
            ("taints", self.taints),
            ("affinity", self.affinity),
            ("resources", self.resources),
            ("balance", self.balance),
            ("images", self.images),
            ("spread", self.spread),
            ("neighbours", self.neighbours),
        ];
        let some: Vec<String> = all
            .iter()
            .filter(|(_, value)| *value != 0)
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        some.join(", ")
    }
}

impl Decision {
    pub(super) fn new(
        pod: &Pod,
        verdicts: Vec<(Text, Verdict)>,
        message: Option<String>,
        known: &Nodes,
    ) -> Self {
        let nodes: Vec<NodeVerdict> = verdicts
            .into_iter()
            .map(|(name, verdict)| {
                let (score, reasons) = match verdict {
                    Verdict::Possible(score) => (Some(score), Vec::new()),
                    Verdict::Refused(reasons) => (
                        None,
                        reasons.iter().map(|reason| known.words(reason)).collect(),
                    ),
                    Verdict::Nowhere(why) => (None, vec![why]),
                };
                NodeVerdict {
                    system: known.systems.get(&*name).cloned().unwrap_or_default(),
                    node: name.to_string(),
                    possible: score.is_some(),
                    score: score.map(|score| score.total()),
                    parts: score.map(Parts::from),
                    reasons,
                }
            })
            .collect();
        let best = nodes.first().filter(|node| node.possible);
        Self {
            namespace: pod.namespace().unwrap_or_default(),
            pod: pod.name_any(),
            node: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
            would_be_placed: best.map(|node| node.node.clone()),
            message,
            notes: notes(pod),
            nodes,
        }
    }

    /// The first line: where the pod is, and where it would go.
    fn summary(&self) -> String {
        let Self { namespace, pod, .. } = self;
        let count = self.nodes.iter().filter(|node| node.possible).count();
        let possible = format!("{count} of {} nodes could take it", self.nodes.len());
        match (&self.node, &self.would_be_placed) {
            (Some(node), Some(best)) if node == best => {
                format!(
                    "pod {namespace}/{pod} is on {node}, and would be placed there again; {possible}"
                )
            }
            (Some(node), Some(best)) => {
                format!(
                    "pod {namespace}/{pod} is on {node}, and would be placed on {best} now; {possible}"
                )
            }
            (Some(node), None) => {
                format!("pod {namespace}/{pod} is on {node}, and could be placed nowhere now")
            }
            (None, Some(best)) => {
                format!(
                    "pod {namespace}/{pod} has no node, and would be placed on {best} now; {possible}"
                )
            }
            (None, None) => {
                format!("pod {namespace}/{pod} has no node, and can be placed nowhere now")
            }
        }
    }
}

/// What has nothing to do with nodes.
fn notes(pod: &Pod) -> Vec<String> {
    let mut notes = Vec::new();
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    if let Some(phase @ ("Succeeded" | "Failed")) = phase {
        notes.push(format!("the pod is over ({phase}) and is not placed again"));
    }
    if pod.metadata.deletion_timestamp.is_some() {
        notes.push("the pod is being deleted".to_owned());
    }
    let spec = pod.spec.as_ref();
    let gates = spec.and_then(|spec| spec.scheduling_gates.as_deref());
    let gates: Vec<&str> = gates
        .unwrap_or_default()
        .iter()
        .map(|gate| gate.name.as_str())
        .collect();
    if !gates.is_empty() {
        notes.push(format!(
            "the pod is not placed before its scheduling gates are removed: {}",
            gates.join(", ")
        ));
    }
    let scheduler = spec.and_then(|spec| spec.scheduler_name.as_deref());
    if let Some(other) = scheduler.filter(|name| !name.is_empty() && *name != DEFAULT_SCHEDULER) {
        notes.push(format!(
            "the pod is placed by the scheduler {other}, which may decide otherwise"
        ));
    }
    notes
}

impl Document for Decision {
    fn text(&self, wide: bool, shown: Shown) -> String {
        let mut text = self.summary() + "\n";
        for note in self.notes.iter().chain(&self.message) {
            text.push_str(note);
            text.push('\n');
        }
        if self.nodes.is_empty() {
            return text;
        }
        let rows: Vec<Vec<Cell>> = self
            .nodes
            .iter()
            .map(|node| {
                let why = match &node.parts {
                    Some(parts) => parts.text(),
                    None => node.reasons.join("; "),
                };
                vec![
                    Cell::new(&node.node),
                    Cell::new(&node.system),
                    Cell::new(if node.possible { "yes" } else { "no" }),
                    Cell::new(
                        node.score
                            .map(|score| score.to_string())
                            .unwrap_or_default(),
                    ),
                    Cell::new(why),
                ]
            })
            .collect();
        let titles = ["NODE", "SYSTEM", "POSSIBLE", "SCORE", "WHY"];
        let width = shown.width.filter(|_| !wide);
        text + "\n" + &render_table(&titles, &rows, Shown { width, ..shown })
    }

    fn names(&self) -> Vec<String> {
        let possible = self.nodes.iter().filter(|node| node.possible);
        possible.map(|node| format!("node/{}", node.node)).collect()
    }
}
