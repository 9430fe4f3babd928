//! `transom top pods`: what each pod, or each container, uses.

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use serde::Serialize;

use super::{Measured, SortBy, Usage, cpu, measured, memory, not_yet, sort};
use crate::client::Everywhere;
use crate::cluster::{Chosen, Cluster};
use crate::context::Context;
use crate::failure::Exit;
use crate::output::{Cell, Column, Row, Shown};

/// Show what pods use
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom top pods\n  transom top pods -A --sort-by memory\n  transom top pods web --containers"
)]
pub(super) struct Pods {
    /// One pod; without it all
    #[arg(value_name = "NAME", conflicts_with_all = ["selector", "all_namespaces"])]
    name: Option<String>,

    #[command(flatten)]
    place: Everywhere,

    /// The pods with these labels, such as `app=web`
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,

    /// Each container by itself
    #[arg(long)]
    containers: bool,

    /// The most first
    #[arg(long, value_name = "WHAT")]
    sort_by: Option<SortBy>,

    #[command(flatten)]
    cluster: Chosen,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PodRow {
    namespace: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<String>,
    milli_cpu: Option<i64>,
    memory: Option<i64>,
    #[serde(skip)]
    usage: Option<Usage>,
}

impl Pods {
    pub(super) async fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let cluster = self.cluster.open(cx).await?;
        let namespace = self.place.namespace(&cluster);
        let path = match namespace {
            Some(namespace) => format!("namespaces/{namespace}/pods"),
            None => "pods".to_owned(),
        };
        let mut measured = measured(&cluster, &path, self.selector.as_deref()).await?;
        if let Some(name) = &self.name {
            measured.retain(|one| one.metadata.name == *name);
        }
        if measured.is_empty() {
            return self.nothing(cx, &cluster, namespace).await;
        }
        let mut rows: Vec<PodRow> = measured.iter().flat_map(|one| self.rows(one)).collect();
        sort(&mut rows, self.sort_by, |row| row.usage);
        if namespace.is_none() {
            cx.out
                .list(&rows.into_iter().map(Anywhere).collect::<Vec<_>>())?;
        } else {
            cx.out.list(&rows)?;
        }
        Ok(Exit::Success)
    }

    fn rows(&self, one: &Measured) -> Vec<PodRow> {
        let mut usages = one
            .containers
            .iter()
            .map(|container| Usage::of(&container.usage));
        if !self.containers {
            let whole = usages.try_fold(Usage::default(), |sum, usage| Some(sum.plus(usage?)));
            return vec![PodRow::of(one, None, whole)];
        }
        let named = one.containers.iter().zip(usages);
        named
            .map(|(container, usage)| PodRow::of(one, Some(container.name.clone()), usage))
            .collect()
    }

    /// No measurements: because there are no pods, or because nobody measured them yet.
    async fn nothing(
        &self,
        cx: &Context,
        cluster: &Cluster,
        namespace: Option<&str>,
    ) -> anyhow::Result<Exit> {
        let api: Api<Pod> = match namespace {
            Some(namespace) => Api::namespaced(cluster.client.clone(), namespace),
            None => Api::all(cluster.client.clone()),
        };
        if let Some(name) = &self.name {
            cluster.answer(api.get(name).await)?;
            return not_yet(&format!("pod {name}"));
        }
        let labels = self.selector.as_deref().unwrap_or_default();
        let running = ListParams::default()
            .labels(labels)
            .fields("status.phase=Running")
            .limit(1);
        if cluster.answer(api.list(&running).await)?.items.is_empty() {
            cx.out.list::<PodRow>(&[])?;
            return Ok(Exit::Success);
        }
        not_yet("pods")
    }
}

impl PodRow {
    fn of(one: &Measured, container: Option<String>, usage: Option<Usage>) -> Self {
        Self {
            namespace: one.metadata.namespace.clone(),
            name: one.metadata.name.clone(),
            container,
            milli_cpu: usage.map(|usage| usage.milli_cpu),
            memory: usage.map(|usage| usage.memory),
            usage,
        }
    }
}

impl Row for PodRow {
    const PLURAL: &'static str = "running pods";

    fn columns() -> &'static [Column] {
        const {
            &[
                Column::new("NAME"),
                Column::new("CPU(cores)"),
                Column::new("MEMORY(bytes)"),
            ]
        }
    }

    fn cells(&self, _: Shown) -> Vec<Cell> {
        let name = match &self.container {
            Some(container) => format!("{}/{container}", self.name),
            None => self.name.clone(),
        };
        vec![
            Cell::new(name),
            Cell::new(cpu(self.usage)),
            Cell::new(memory(self.usage)),
        ]
    }

    fn name(&self) -> String {
        format!("pod/{}", self.name)
    }
}

/// A pod among those of all namespaces.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Anywhere(PodRow);

impl Row for Anywhere {
    const PLURAL: &'static str = PodRow::PLURAL;

    fn columns() -> &'static [Column] {
        const {
            &[
                Column::new("NAMESPACE"),
                Column::new("NAME"),
                Column::new("CPU(cores)"),
                Column::new("MEMORY(bytes)"),
            ]
        }
    }

    fn cells(&self, shown: Shown) -> Vec<Cell> {
        let before = Cell::new(&self.0.namespace);
        std::iter::once(before).chain(self.0.cells(shown)).collect()
    }

    fn name(&self) -> String {
        self.0.name()
    }
}
