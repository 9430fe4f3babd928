//! Objects as the server has them, or as the rows that it makes of them. Invariant: lists come in pages, and a watch
//! that ends goes on where it was.

use anyhow::Context as _;
use futures::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};
use http::header::{ACCEPT, HeaderValue};
use kube::api::{GetParams, ListParams, WatchParams};
use kube::core::Request;
use serde_json::Value;

use super::kinds::Kind;
use super::options::Selection;
use crate::cluster::Cluster;
use crate::failure::{Advice as _, Exit};

/// How many objects one answer has.
const PAGE: u32 = 500;
/// The longest event that is taken; objects are smaller by far.
const LONGEST: u64 = 64 << 20;
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// How objects are asked for.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) cluster: &'a Cluster,
    /// Whether the server makes rows of them.
    pub(crate) as_table: bool,
}

impl<'a> Reader<'a> {
    /// Asks for objects whole.
    pub(crate) fn whole(cluster: &'a Cluster) -> Self {
        Self {
            cluster,
            as_table: false,
        }
    }

    /// One object.
    pub(crate) async fn get(
        self,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
    ) -> anyhow::Result<Value> {
        let request = Request::new(kind.path(namespace)).get(name, &GetParams::default());
        self.ask(request.exit(Exit::Usage)?).await
    }

    /// One object, or none if there is none of that name.
    pub(crate) async fn find(
        self,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
    ) -> anyhow::Result<Option<Value>> {
        let request = Request::new(kind.path(namespace)).get(name, &GetParams::default());
        let request = self.accepting(request.exit(Exit::Usage)?);
        match self.cluster.client.request(request).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            answer => self.cluster.answer(answer),
        }
    }

    /// A list, page by page. Each page is a list of objects or a table.
    pub(crate) async fn list(
        self,
        kind: &Kind,
        namespace: Option<&str>,
        selection: &Selection,
        mut take: impl FnMut(Value) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut parameters = ListParams {
            label_selector: selection.labels.clone(),
            field_selector: selection.fields.clone(),
            limit: Some(PAGE),
            ..ListParams::default()
        };
        loop {
            let request = Request::new(kind.path(namespace)).list(&parameters);
            let page = self.ask(request.exit(Exit::Usage)?).await?;
            let next = page["metadata"]["continue"].as_str().unwrap_or_default();
            let next = (!next.is_empty()).then(|| next.to_owned());
            take(page)?;
            match next {
                Some(next) => parameters.continue_token = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// All objects of a list, each with its kind, which lists leave out.
    pub(crate) async fn objects(
        self,
        kind: &Kind,
        namespace: Option<&str>,
        selection: &Selection,
    ) -> anyhow::Result<(Vec<Value>, String)> {
        let mut found = Vec::new();
        let mut version = String::new();
        let list = self.list(kind, namespace, selection, |mut page| {
            version = version_of(&page);
            if let Value::Array(items) = page["items"].take() {
                found.extend(items.into_iter().map(|item| with_kind(item, kind)));
            }
            Ok(())
        });
        list.await?;
        Ok((found, version))
    }

    /// What happens to objects from a version on.
    pub(crate) fn events(
        self,
        kind: Kind,
        namespace: Option<String>,
        selection: Selection,
        version: String,
    ) -> Events<'a> {
        Events {
            reader: self,
            kind,
            namespace,
            selection,
            version,
            stream: None,
        }
    }

    async fn ask(self, request: http::Request<Vec<u8>>) -> anyhow::Result<Value> {
        let request = self.accepting(request);
        self.cluster
            .answer(self.cluster.client.request(request).await)
    }

    fn accepting(self, mut request: http::Request<Vec<u8>>) -> http::Request<Vec<u8>> {
        if self.as_table {
            let table = HeaderValue::from_static(TABLE);
            request.headers_mut().insert(ACCEPT, table);
        }
        request
    }
}

/// Something that happened to an object.
#[derive(Debug)]
pub(crate) struct Seen {
    /// `ADDED`, `MODIFIED` or `DELETED`.
    pub(crate) what: String,
    /// The object, or a table with its row.
    pub(crate) object: Value,
}

/// A watch.
pub(crate) struct Events<'a> {
    reader: Reader<'a>,
    kind: Kind,
    namespace: Option<String>,
    selection: Selection,
    version: String,
    stream: Option<Box<dyn AsyncBufRead + Send + Unpin>>,
}

impl Events<'_> {
    /// The next thing that happens. Fails if the server no longer knows what happened since the last one.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Seen> {
        loop {
            if self.stream.is_none() {
                self.stream = Some(self.open().await?);
            }
            let line = self.line().await?;
            let Some(line) = line else {
                self.stream = None;
                continue;
            };
            let mut event: Value =
                serde_json::from_str(&line).context("the server sent an event that is no JSON")?;
            let object = event["object"].take();
            let version = version_of(&object);
            match event["type"].as_str() {
                Some("BOOKMARK") => self.version = version,
                Some("ERROR") => {
                    let message = object["message"].as_str().unwrap_or("no reason was given");
                    return Err(anyhow::anyhow!("the watch ended: {message}"))
                        .hint("give the command again to go on from now");
                }
                what => {
                    if !version.is_empty() {
                        self.version = version;
                    }
                    let what = what.unwrap_or_default().to_owned();
                    return Ok(Seen { what, object });
                }
            }
        }
    }

    async fn open(&self) -> anyhow::Result<Box<dyn AsyncBufRead + Send + Unpin>> {
        let parameters = WatchParams {
            label_selector: self.selection.labels.clone(),
            field_selector: self.selection.fields.clone(),
            ..WatchParams::default()
        };
        let request = Request::new(self.kind.path(self.namespace.as_deref()));
        let request = request
            .watch(&parameters, &self.version)
            .exit(Exit::Usage)?;
        let request = self.reader.accepting(request);
        let cluster = self.reader.cluster;
        let stream = cluster.answer(cluster.client.request_stream(request).await)?;
        Ok(Box::new(Box::pin(stream)))
    }

    /// The next line; none where the stream ends.
    async fn line(&mut self) -> anyhow::Result<Option<String>> {
        let Some(stream) = self.stream.as_mut() else {
            return Ok(None);
        };
        let mut line = String::new();
        let read = stream.take(LONGEST).read_line(&mut line).await;
        // A connection that breaks is one that ends: the next begins where this one was.
        match read {
            Ok(0) | Err(_) => Ok(None),
            Ok(_) if line.ends_with('\n') => Ok(Some(line)),
            Ok(_) => Ok(None),
        }
    }
}

/// The version of a list, of an object, or of the object in a table's row.
pub(crate) fn version_of(value: &Value) -> String {
    let of = |value: &Value| {
        let version = value["metadata"]["resourceVersion"].as_str();
        version.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    of(value)
        .or_else(|| of(&value["rows"][0]["object"]))
        .unwrap_or_default()
}

/// Objects in lists do not say what they are.
fn with_kind(object: Value, kind: &Kind) -> Value {
    let Value::Object(fields) = object else {
        return object;
    };
    let version = kind.resource().api_version;
    let mut whole = serde_json::Map::new();
    whole.insert("apiVersion".to_owned(), version.into());
    whole.insert("kind".to_owned(), kind.kind.clone().into());
    whole.extend(fields);
    Value::Object(whole)
}
