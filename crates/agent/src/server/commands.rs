//! Programs in containers, run or joined by people: exec and attach.

use axum::{
    extract::{Path, Request, State},
    http::Uri,
    response::Response,
};
use transom_runtime::{Attach, Exec, Session};

use super::{
    Desk, Refusal,
    exchange::{self, PROTOCOLS},
    is_set, query, spdy,
    upgrade::{self, Asked, Upgrade},
};

/// A message of a client is not larger: kubectl sends much less at once.
const LARGEST_MESSAGE: usize = 1 << 20;

/// The protocol within SPDY: how a program ended is told as an object.
const SPDY_VERSIONS: &[&str] = &["v4.channel.k8s.io"];

/// `namespace/pod/container`, with the uid of the pod in between from some.
fn place(path: Vec<String>) -> Result<(String, String, String), Refusal> {
    match <[String; 3]>::try_from(path) {
        Ok([namespace, pod, container]) => Ok((namespace, pod, container)),
        Err(path) => match <[String; 4]>::try_from(path) {
            Ok([namespace, pod, _, container]) => Ok((namespace, pod, container)),
            Err(_) => Err(Refusal::bad("the path names no container")),
        },
    }
}

pub(super) async fn exec(
    State(desk): State<Desk>,
    Path(path): Path<Vec<String>>,
    uri: Uri,
    upgrade: Asked,
    request: Request,
) -> Result<Response, Refusal> {
    let words = query(&uri);
    let (namespace, pod, name) = place(path)?;
    let object = desk.pod(&namespace, &pod)?;
    let container = desk.running(&object, &name)?;
    let command: Vec<_> = words
        .iter()
        .filter(|(key, _)| key == "command")
        .map(|(_, value)| value.clone())
        .collect();
    if command.is_empty() {
        return Err(Refusal::bad("you must specify at least 1 command"));
    }
    let terminal = is_set(&words, &["tty"]);
    let exec = Exec {
        command,
        stdin: is_set(&words, &["input", "stdin"]),
        stdout: is_set(&words, &["output", "stdout"]),
        stderr: is_set(&words, &["error", "stderr"]) && !terminal,
        terminal,
    };
    let streams = count_streams([exec.stdin, exec.stdout, exec.stderr])? + usize::from(terminal);
    let upgrade = upgrade::choose(upgrade, request, SPDY_VERSIONS)?;
    let session = desk.site.options.runtime.exec(&container.id, &exec).await?;
    Ok(converse(upgrade, session, streams))
}

pub(super) async fn attach(
    State(desk): State<Desk>,
    Path(path): Path<Vec<String>>,
    uri: Uri,
    upgrade: Asked,
    request: Request,
) -> Result<Response, Refusal> {
    let words = query(&uri);
    let (namespace, pod, name) = place(path)?;
    let object = desk.pod(&namespace, &pod)?;
    let container = desk.running(&object, &name)?;
    let attach = Attach {
        stdin: is_set(&words, &["input", "stdin"]),
        stdout: is_set(&words, &["output", "stdout"]),
        stderr: is_set(&words, &["error", "stderr"]) && !is_set(&words, &["tty"]),
    };
    let terminal = is_set(&words, &["tty"]);
    let streams =
        count_streams([attach.stdin, attach.stdout, attach.stderr])? + usize::from(terminal);
    let upgrade = upgrade::choose(upgrade, request, SPDY_VERSIONS)?;
    let session = desk
        .site
        .options
        .runtime
        .attach(&container.id, &attach)
        .await?;
    Ok(converse(upgrade, session, streams))
}

/// How many streams a client opens over SPDY: those it asks for, and one for how it ended.
fn count_streams(wanted: [bool; 3]) -> Result<usize, Refusal> {
    match wanted.into_iter().map(usize::from).sum::<usize>() {
        0 => Err(Refusal::bad(
            "you must specify at least 1 of stdin, stdout, stderr",
        )),
        streams => Ok(streams + 1),
    }
}

/// Hands the streams of a program to whatever the client speaks.
fn converse(upgrade: Upgrade, session: Session, streams: usize) -> Response {
    match upgrade {
        Upgrade::WebSocket(upgrade) => upgrade
            .max_message_size(LARGEST_MESSAGE)
            .protocols(PROTOCOLS)
            .on_upgrade(|socket| exchange::converse(socket, session)),
        Upgrade::Spdy(upgrade) => upgrade.accept(move |raw| spdy::converse(raw, session, streams)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_in_the_path_is_skipped() {
        let path = |text: &str| place(text.split('/').map(str::to_owned).collect());
        let wanted = ("n".to_owned(), "p".to_owned(), "c".to_owned());
        assert_eq!(path("n/p/c").unwrap(), wanted);
        assert_eq!(path("n/p/u/c").unwrap(), wanted);
        assert!(path("n/p").is_err());
    }
}
