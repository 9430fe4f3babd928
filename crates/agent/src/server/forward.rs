//! Ports of pods, brought to people: two channels per port over one WebSocket, one for data and one for errors.

use std::sync::Arc;

use axum::{
    extract::{
        Path, Request, State,
        ws::{Message, WebSocket},
    },
    http::{StatusCode, Uri},
    response::Response,
};
use futures::{SinkExt as _, StreamExt as _};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, WriteHalf},
    sync::mpsc,
};
use transom_runtime::{Connection, PodId, PodState, Runtime};

use super::{
    Desk, Refusal,
    exchange::{farewell, message},
    query, spdy,
    upgrade::{self, Asked, Upgrade},
};

/// SPDY inside the WebSocket, or a pair of channels per port.
const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";
const PROTOCOLS: [&str; 2] = [TUNNEL, "v4.channel.k8s.io"];
const SPDY_VERSIONS: &[&str] = &["portforward.k8s.io"];
const BLOCK: usize = 32 << 10;
const QUEUE: usize = 16;
const LARGEST_MESSAGE: usize = 1 << 20;
/// More ports need more connections.
const MOST_PORTS: usize = 32;

pub(super) async fn forward(
    State(desk): State<Desk>,
    Path(path): Path<Vec<String>>,
    uri: Uri,
    upgrade: Asked,
    request: Request,
) -> Result<Response, Refusal> {
    let [namespace, name, ..] = path.as_slice() else {
        return Err(Refusal::bad("the path names no pod"));
    };
    let sandbox = sandbox(&desk, namespace, name)?;
    let runtime = Arc::clone(&desk.site.options.runtime);
    let upgrade = match upgrade::choose(upgrade, request, SPDY_VERSIONS)? {
        Upgrade::Spdy(upgrade) => {
            return Ok(upgrade.accept(move |raw| spdy::forward(raw, runtime, sandbox)));
        }
        Upgrade::WebSocket(upgrade) => upgrade
            .max_message_size(LARGEST_MESSAGE)
            .protocols(PROTOCOLS),
    };
    if upgrade
        .selected_protocol()
        .is_some_and(|chosen| chosen == TUNNEL)
    {
        let speak = |io| spdy::forward(io, runtime, sandbox);
        return Ok(upgrade.on_upgrade(|socket| upgrade::tunnel(socket, speak)));
    }
    let ports = ports(&query(&uri))?;
    Ok(upgrade.on_upgrade(move |socket| carry(socket, desk, sandbox, ports)))
}

fn sandbox(desk: &Desk, namespace: &str, name: &str) -> Result<PodId, Refusal> {
    let object = desk.pod(namespace, name)?;
    let uid = object.metadata.uid.as_deref().unwrap_or_default();
    let sandboxes = desk.site.observer.sandboxes(uid);
    let ready = sandboxes.iter().find(|one| one.state == PodState::Ready);
    let missing = || {
        Refusal::new(
            StatusCode::NOT_FOUND,
            format!("pod \"{name}\" is not running"),
        )
    };
    ready.map(|one| one.id.clone()).ok_or_else(missing)
}

fn ports(words: &[(String, String)]) -> Result<Vec<u16>, Refusal> {
    let mut ports = Vec::new();
    for (_, value) in words
        .iter()
        .filter(|(key, _)| key == "port" || key == "ports")
    {
        for one in value.split(',') {
            let port = one.parse::<u16>().ok().filter(|port| *port > 0);
            ports.push(port.ok_or_else(|| Refusal::bad(format!("invalid port {one:?}")))?);
        }
    }
    match ports.len() {
        0 => Err(Refusal::bad("query parameter \"port\" is required")),
        1..=MOST_PORTS => Ok(ports),
        _ => Err(Refusal::bad("too many ports")),
    }
}

type Outgoing = mpsc::Sender<(u8, Vec<u8>)>;

async fn carry(socket: WebSocket, desk: Desk, sandbox: PodId, ports: Vec<u16>) {
    let (mut sink, mut stream) = socket.split();
    let (outgoing, mut pieces) = mpsc::channel(QUEUE);
    let mut inputs: Vec<Option<WriteHalf<_>>> = Vec::new();
    let mut tasks = tokio::task::JoinSet::new();
    for (index, port) in ports.into_iter().enumerate() {
        let channel = u8::try_from(index * 2).unwrap_or(u8::MAX - 1);
        for channel in [channel, channel + 1] {
            if sink
                .send(message(channel, &port.to_le_bytes()))
                .await
                .is_err()
            {
                return;
            }
        }
        inputs.push(
            open(
                desk.site.options.runtime.as_ref(),
                &sandbox,
                port,
                channel,
                &outgoing,
                &mut tasks,
            )
            .await,
        );
    }
    drop(outgoing);
    let sending = async {
        while let Some((channel, bytes)) = pieces.recv().await {
            if sink.send(message(channel, &bytes)).await.is_err() {
                return;
            }
        }
        if let Err(error) = sink.send(farewell()).await {
            tracing::debug!(%error, "a client went");
        }
    };
    let listening = async {
        while let Some(Ok(received)) = stream.next().await {
            let Message::Binary(bytes) = received else {
                if matches!(received, Message::Close(_)) {
                    return;
                }
                continue;
            };
            let Some((channel, data)) = bytes.split_first() else {
                continue;
            };
            let input = inputs
                .get_mut(usize::from(channel / 2))
                .filter(|_| channel % 2 == 0);
            if let Some(Some(writer)) = input
                && let Err(error) = writer.write_all(data).await
            {
                tracing::debug!(%error, "a port does not take more");
            }
        }
    };
    tokio::select! {
        () = sending => {}
        () = listening => {}
    }
}

type Half = WriteHalf<Box<dyn Both>>;

/// Both directions of a connection, under a name of ours.
trait Both: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin {}
impl<T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin> Both for T {}

async fn open(
    runtime: &dyn Runtime,
    sandbox: &PodId,
    port: u16,
    channel: u8,
    outgoing: &Outgoing,
    tasks: &mut tokio::task::JoinSet<()>,
) -> Option<Half> {
    let Connection(connection) = match runtime.connect(sandbox, port).await {
        Ok(connection) => connection,
        Err(error) => {
            let text = format!("error forwarding port {port} to pod: {error}");
            if outgoing
                .send((channel + 1, text.into_bytes()))
                .await
                .is_err()
            {
                tracing::debug!(port, "a client went before it was told");
            }
            return None;
        }
    };
    let connection: Box<dyn Both> = Box::new(connection);
    let (mut reader, writer) = tokio::io::split(connection);
    let outgoing = outgoing.clone();
    tasks.spawn(async move {
        let mut block = vec![0; BLOCK];
        while let Ok(length @ 1..) = reader.read(&mut block).await {
            if outgoing
                .send((channel, block[..length].to_vec()))
                .await
                .is_err()
            {
                return;
            }
        }
    });
    Some(writer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_numbers_and_not_too_many() {
        let read = |text: &str| ports(&query(&format!("/x?{text}").parse().unwrap()));
        assert_eq!(read("port=80&port=81").unwrap(), [80, 81]);
        assert_eq!(read("ports=80,81").unwrap(), [80, 81]);
        for bad in [
            "",
            "port=0",
            "port=x",
            "port=70000",
            &format!("ports={}", ["1"; 33].join(",")),
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
