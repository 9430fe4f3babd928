//! Ports of pods over SPDY: for each connection the client opens two streams, one for data and one for errors.

use std::{collections::BTreeMap, sync::Arc};

use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _},
    sync::mpsc,
    task::JoinSet,
};
use transom_runtime::{Connection, PodId, Runtime};

use super::{Stream, Writer, commands::header, serve};

const QUEUE: usize = 16;
/// Pairs of which one half is missing.
const MOST_HALVES: usize = 64;

/// Carries connections to ports until the client goes.
pub(in crate::server) async fn forward(
    io: impl AsyncRead + AsyncWrite + Unpin + Send,
    runtime: Arc<dyn Runtime>,
    sandbox: PodId,
) {
    let (sender, mut opened) = mpsc::channel(QUEUE);
    let pairing = async {
        let mut halves: BTreeMap<(String, String), (&'static str, Stream)> = BTreeMap::new();
        let mut connections = JoinSet::new();
        while let Some((stream, headers)) = opened.recv().await {
            let port = header(&headers, "port").to_owned();
            let key = (header(&headers, "requestid").to_owned(), port.clone());
            let kind = if header(&headers, "streamtype") == "error" {
                "error"
            } else {
                "data"
            };
            while connections.try_join_next().is_some() {}
            let (data, errors) = match halves.remove(&key) {
                Some((other, half)) if other != kind => {
                    if kind == "data" {
                        (stream, half)
                    } else {
                        (half, stream)
                    }
                }
                _ if halves.len() < MOST_HALVES => {
                    halves.insert(key, (kind, stream));
                    continue;
                }
                _ => continue,
            };
            connections.spawn(carry(
                Arc::clone(&runtime),
                sandbox.clone(),
                port,
                data,
                errors.writer(),
            ));
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        served = serve(io, sender) => if let Err(error) = served {
            tracing::debug!(%error, "a client went");
        },
        () = pairing => {}
    }
}

async fn carry(
    runtime: Arc<dyn Runtime>,
    sandbox: PodId,
    port: String,
    mut data: Stream,
    errors: Writer,
) {
    let opened = match port.parse::<u16>().ok().filter(|port| *port > 0) {
        Some(number) => runtime
            .connect(&sandbox, number)
            .await
            .map_err(|error| error.to_string()),
        None => Err("it is no port".to_owned()),
    };
    let writer = data.writer();
    match opened {
        Ok(Connection(connection)) => {
            let (reader, mut sink) = tokio::io::split(connection);
            let sending = async {
                while let Some(bytes) = data.read().await {
                    if sink.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
                if let Err(error) = sink.shutdown().await {
                    tracing::debug!(%error, "a connection into a pod was gone before its end");
                }
            };
            tokio::join!(sending, writer.copy(reader));
        }
        Err(error) => {
            let text = format!(
                "an error occurred forwarding {port}: error forwarding port {port} to pod: {error}"
            );
            errors.write(text.as_bytes()).await;
            writer.finish().await;
        }
    }
    errors.finish().await;
}
