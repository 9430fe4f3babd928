//! A program over SPDY: the client opens a stream for each of the program's, and one for how it ended.

use std::{collections::BTreeMap, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
};
use transom_runtime::Session;

use super::{Headers, Stream, serve};
use crate::server::exchange::{end, set_size, verdict, write};

/// How long a client may take to open its streams.
const OPENING: Duration = Duration::from_secs(30);
/// How long it may take to go after all was said.
const FAREWELL: Duration = Duration::from_secs(5);
/// How long output may keep coming after the program has ended.
const REST: Duration = Duration::from_secs(2);

/// The value of a header.
pub(super) fn header<'a>(headers: &'a Headers, name: &str) -> &'a str {
    let found = headers.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| value.as_str()).unwrap_or_default()
}

/// Carries the streams of a program until it ends or the client goes. `wanted` is how many streams the client opens.
pub(in crate::server) async fn converse(
    io: impl AsyncRead + AsyncWrite + Unpin + Send,
    session: Session,
    wanted: usize,
) {
    let (sender, mut opened) = mpsc::channel(wanted.max(1));
    let mut serving = std::pin::pin!(serve(io, sender));
    let talking = async {
        let mut streams = BTreeMap::new();
        let opening = async {
            while streams.len() < wanted
                && let Some((stream, headers)) = opened.recv().await
            {
                streams.insert(header(&headers, "streamtype").to_owned(), stream);
            }
        };
        if tokio::time::timeout(OPENING, opening).await.is_err() {
            tracing::debug!("a client did not open its streams in time");
            return;
        }
        talk(session, streams).await;
    };
    tokio::select! {
        served = &mut serving => {
            if let Err(error) = served {
                tracing::debug!(%error, "a client went");
            }
            return;
        }
        () = talking => {}
    }
    if tokio::time::timeout(FAREWELL, serving).await.is_err() {
        tracing::debug!("a client stayed after all was said");
    }
}

async fn talk(session: Session, mut streams: BTreeMap<String, Stream>) {
    let Session {
        input,
        output,
        errors,
        resize,
        ended,
    } = session;
    let writer = |stream: Option<&Stream>| stream.map(Stream::writer);
    let result = writer(streams.get("error"));
    let (out, err) = (writer(streams.get("stdout")), writer(streams.get("stderr")));
    let (stdin, sizes) = (streams.remove("stdin"), streams.remove("resize"));
    let listening = async {
        let feed = async {
            let mut input = input;
            if let Some(mut stdin) = stdin {
                while let Some(bytes) = stdin.read().await {
                    write(&mut input, &bytes).await;
                }
            }
            end(input.take()).await;
        };
        let fit = async {
            if let Some(mut sizes) = sizes {
                while let Some(bytes) = sizes.read().await {
                    bytes
                        .split(|byte| *byte == b'\n')
                        .for_each(|line| set_size(resize.as_ref(), line));
                }
            }
        };
        tokio::join!(feed, fit);
        std::future::pending::<()>().await;
    };
    let showing = async {
        let show = async |writer: Option<super::Writer>,
                          reader: Option<Box<dyn AsyncRead + Send + Unpin>>| {
            if let (Some(writer), Some(reader)) = (writer, reader) {
                writer.copy(reader).await;
            }
        };
        tokio::join!(show(out, output), show(err, errors));
    };
    let running = async {
        let mut showing = std::pin::pin!(showing);
        let mut ended = ended;
        tokio::select! {
            () = &mut showing => ended.await,
            code = &mut ended => {
                if tokio::time::timeout(REST, showing).await.is_err() {
                    tracing::debug!("output of a program that has ended was cut off");
                }
                code
            }
        }
    };
    let code = tokio::select! {
        code = running => code,
        () = listening => Ok(0),
    };
    if let Some(result) = result
        && result.write(verdict(code).to_string().as_bytes()).await
    {
        result.finish().await;
    }
}
