//! `transom get`: objects as the server shows them.

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::client::{self, Everywhere, Growing, Kind, Kinds, Reader, Selection, Table, Target};
use crate::cluster::Chosen;
use crate::context::Context;
use crate::failure::{Advice as _, Exit};
use crate::output::{Document, Format, Shown};

const EXAMPLES: &str = "\
Examples:
  transom get pods                         Those of the namespace
  transom get pods -A -o wide              Of all namespaces, with their nodes
  transom get deploy,svc -l app=web        Of several kinds, by label
  transom get pod web -o yaml              One of them, whole
  transom get pod/web service/web -o name
  transom get nodes -w                     And what changes, until interrupted

Kinds go by their plural, their singular, their kind or their short name.";

/// Show objects of the cluster
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Get {
    /// A kind, kinds with commas between them, or KIND/NAME; after one kind also names
    #[arg(required = true, value_name = "KIND")]
    words: Vec<String>,

    #[command(flatten)]
    place: Everywhere,

    #[command(flatten)]
    selection: Selection,

    /// Go on with what changes, until interrupted
    #[arg(short, long)]
    watch: bool,

    /// With --watch, say for each line what happened
    #[arg(long, requires = "watch")]
    output_watch_events: bool,

    /// Show the labels, too
    #[arg(long)]
    show_labels: bool,

    /// In JSON and YAML, show which program set which field
    #[arg(long)]
    show_managed_fields: bool,

    /// A name that is not there is no failure
    #[arg(long)]
    ignore_not_found: bool,

    #[command(flatten)]
    cluster: Chosen,
}

impl Get {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        client::block_on(async {
            let cluster = self.cluster.open(cx).await?;
            let kinds = Kinds::discover(&cluster).await?;
            let targets = client::targets(&kinds, &self.words)?;
            let mut getting = Getting {
                reader: Reader {
                    cluster: &cluster,
                    as_table: !matches!(cx.out.format(), Format::Json | Format::Yaml),
                },
                namespace: self.place.namespace(&cluster),
                several: targets.len() > 1,
                cx,
                wanted: &self,
            };
            self.check(&targets)?;
            if self.watch {
                getting.watch(&targets[0]).await
            } else {
                getting.once(&targets).await
            }
        })
    }

    /// Refuses what cannot be meant.
    fn check(&self, targets: &[Target]) -> anyhow::Result<()> {
        let wrong = |text: &str| Err(anyhow::anyhow!("{text}")).exit(Exit::Usage);
        let names: usize = targets.iter().map(|target| target.names.len()).sum();
        if names > 0 && !self.selection.is_empty() {
            return wrong("names and a selector cannot be given together");
        }
        let has_namespaces = targets.iter().any(|target| target.kind.is_namespaced);
        if names > 0 && has_namespaces && self.place.all_namespaces {
            return wrong("a name is looked for in one namespace, not in all");
        }
        if self.watch && (targets.len() != 1 || names > 1) {
            return wrong("one kind can be watched at a time, and of it all objects or one");
        }
        Ok(())
    }
}

/// One call of the command.
struct Getting<'a> {
    reader: Reader<'a>,
    namespace: Option<&'a str>,
    /// Whether there is more than one kind.
    several: bool,
    cx: &'a Context,
    wanted: &'a Get,
}

impl Getting<'_> {
    async fn once(&mut self, targets: &[Target]) -> anyhow::Result<Exit> {
        let mut found = Found::default();
        let mut missing = Vec::new();
        for target in targets {
            // A category also has kinds that cannot be listed.
            if target.names.is_empty() && targets.len() > 1 && !target.kind.can("list") {
                continue;
            }
            if target.names.is_empty() {
                let (some, _) = self.list(&target.kind, &self.wanted.selection).await?;
                found.add(some);
            }
            for name in &target.names {
                let answer = self.one(&target.kind, name).await;
                match answer {
                    Ok(some) => found.add(some),
                    Err(error) => missing.push(error),
                }
            }
        }
        found.is_one = matches!(targets, [one] if one.names.len() == 1);
        if self.wanted.ignore_not_found {
            missing.retain(|error| {
                crate::failure::Failure::from_error(error, self.cx.host).exit != Exit::NotFound
            });
        }
        // Of one that is missing there is nothing to show, not even an empty list.
        if !(found.is_one && found.is_empty()) {
            self.print(&found, targets)?;
        }
        client::together(self.cx, "objects could not be shown", missing)
    }

    fn print(&self, found: &Found, targets: &[Target]) -> anyhow::Result<()> {
        let for_people = matches!(self.cx.out.format(), Format::Table | Format::Wide);
        let is_list = targets.iter().all(|target| target.names.is_empty());
        if found.is_empty() && for_people {
            if is_list {
                self.cx.out.remark(&self.nothing(targets));
            }
            return Ok(());
        }
        Ok(self.cx.out.document(found)?)
    }

    fn nothing(&self, targets: &[Target]) -> String {
        let kinds: Vec<&str> = targets
            .iter()
            .map(|target| target.kind.plural.as_str())
            .collect();
        let namespaced = targets.iter().any(|target| target.kind.is_namespaced);
        match self.namespace.filter(|_| namespaced) {
            Some(namespace) => format!("no {} found in namespace {namespace}", kinds.join(", ")),
            None => format!("no {} found", kinds.join(", ")),
        }
    }

    async fn one(&self, kind: &Kind, name: &str) -> anyhow::Result<Found> {
        let answer = self.reader.get(kind, self.namespace, name).await?;
        self.found(kind, answer)
    }

    /// Everything of a kind, and the version of the list.
    async fn list(&self, kind: &Kind, selection: &Selection) -> anyhow::Result<(Found, String)> {
        if !self.reader.as_table {
            let (objects, version) = self.reader.objects(kind, self.namespace, selection).await?;
            let objects = objects.into_iter().map(|object| self.trimmed(object));
            let found = Found {
                objects: objects.collect(),
                ..Found::default()
            };
            return Ok((found, version));
        }
        let mut all: Option<Table> = None;
        let mut version = String::new();
        let pages = self.reader.list(kind, self.namespace, selection, |page| {
            version = client::version_of(&page);
            let table = self.table(kind, page)?;
            match &mut all {
                Some(all) => all.extend(table),
                None => all = Some(table),
            }
            Ok(())
        });
        pages.await?;
        let table = all.unwrap_or_default();
        Ok((Found::of(kind, table), version))
    }

    /// What an answer about one object shows.
    fn found(&self, kind: &Kind, answer: Value) -> anyhow::Result<Found> {
        if self.reader.as_table {
            return Ok(Found::of(kind, self.table(kind, answer)?));
        }
        Ok(Found {
            objects: vec![self.trimmed(answer)],
            ..Found::default()
        })
    }

    fn table(&self, kind: &Kind, answer: Value) -> anyhow::Result<Table> {
        let table = Table::of(answer, self.cx.out.shown())?
            .with_namespace(self.namespace.is_none() && kind.is_namespaced)
            .with_labels(self.wanted.show_labels)
            .wide(self.cx.out.format() == Format::Wide);
        Ok(if self.several {
            table.prefixed(kind)
        } else {
            table
        })
    }

    /// Without what hardly anybody wants to read.
    fn trimmed(&self, mut object: Value) -> Value {
        if let Some(metadata) = object["metadata"].as_object_mut()
            && !self.wanted.show_managed_fields
        {
            metadata.remove("managedFields");
        }
        object
    }

    async fn watch(&self, target: &Target) -> anyhow::Result<Exit> {
        let kind = &target.kind;
        let selection = match target.names.first() {
            Some(name) => self.wanted.selection.named(name),
            None => self.wanted.selection.clone(),
        };
        let mut growing = Growing::with_events(self.wanted.output_watch_events);
        let (found, version) = self.list(kind, &selection).await?;
        self.show("ADDED", found, &mut growing)?;
        let namespace = self.namespace.map(str::to_owned);
        let mut events = self
            .reader
            .events(kind.clone(), namespace, selection, version);
        loop {
            let seen = events.next().await?;
            let found = self.found(kind, seen.object)?;
            self.show(&seen.what, found, &mut growing)?;
        }
    }

    fn show(&self, event: &str, found: Found, growing: &mut Growing) -> anyhow::Result<()> {
        let out = &self.cx.out;
        match out.format() {
            Format::Table | Format::Wide => {
                let tables = found.tables.into_iter();
                let lines: String = tables
                    .map(|table| growing.lines(event, table, out.shown()))
                    .collect();
                out.write(&lines)?;
            }
            Format::Name => out.document(&found)?,
            Format::Json | Format::Yaml => {
                for object in found.objects {
                    let object = if self.wanted.output_watch_events {
                        json!({"type": event, "object": object})
                    } else {
                        object
                    };
                    if out.format() == Format::Yaml {
                        out.write("---\n")?;
                    }
                    out.document(&Found {
                        objects: vec![object],
                        is_one: true,
                        ..Found::default()
                    })?;
                }
            }
        }
        Ok(())
    }
}

/// What was found: tables and names, or the objects themselves.
#[derive(Default)]
struct Found {
    tables: Vec<Table>,
    names: Vec<String>,
    objects: Vec<Value>,
    /// Whether one object was asked for, which is then not in a list.
    is_one: bool,
}

impl Found {
    fn of(kind: &Kind, table: Table) -> Self {
        Self {
            names: table.names(kind),
            tables: vec![table],
            ..Self::default()
        }
    }

    /// Takes more, in the same table if it is about the same.
    fn add(&mut self, other: Self) {
        for table in other.tables {
            match self.tables.last_mut().filter(|last| last.is_like(&table)) {
                Some(last) => last.extend(table),
                None => self.tables.push(table),
            }
        }
        self.names.extend(other.names);
        self.objects.extend(other.objects);
    }

    fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.tables.iter().all(Table::is_empty)
    }
}

impl Serialize for Found {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.objects.as_slice() {
            [one] if self.is_one => one.serialize(serializer),
            items => json!({
                "apiVersion": "v1",
                "kind": "List",
                "metadata": {"resourceVersion": ""},
                "items": items,
            })
            .serialize(serializer),
        }
    }
}

impl Document for Found {
    fn text(&self, _: bool, shown: Shown) -> String {
        let tables = self.tables.iter().filter(|table| !table.is_empty());
        let tables: Vec<String> = tables.map(|table| table.text(shown)).collect();
        tables.join("\n")
    }

    fn names(&self) -> Vec<String> {
        self.names.clone()
    }
}
