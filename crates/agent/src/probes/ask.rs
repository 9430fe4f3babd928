//! Asks a container one question: by a program, by HTTP, by TCP or by gRPC.

use std::{sync::OnceLock, time::Duration};

use futures::StreamExt as _;
use k8s_openapi::{
    api::core::v1::{Container, HTTPGetAction, Probe},
    apimachinery::pkg::util::intstr::IntOrString,
};
use reqwest::{
    Client, Url,
    header::{HeaderMap, HeaderName, HeaderValue, USER_AGENT},
    redirect,
};
use tokio::net::TcpStream;
use transom_runtime::ContainerId;

use crate::{hooks, site::Site};

/// More of an answer's body is not read.
const LARGEST_BODY: usize = 10 << 10;
const MOST_REDIRECTS: usize = 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Good,
    Bad(String),
    /// The question could not be asked.
    Unknown(String),
}

/// Whom a request goes to.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) container: &'a Container,
    /// Unless the request names another.
    pub(crate) host: &'a str,
}

pub(super) async fn ask(
    site: &Site,
    target: Target<'_>,
    id: &ContainerId,
    probe: &Probe,
    limit: Duration,
) -> Answer {
    if let Some(exec) = &probe.exec {
        let command = exec.command.clone().unwrap_or_default();
        let text = command.join(" ");
        return match tokio::time::timeout(limit, hooks::execute(site, id, command)).await {
            Ok(Ok((0, _))) => Answer::Good,
            Ok(Ok((_, output))) => Answer::Bad(output),
            Ok(Err(error)) => Answer::Unknown(error.to_string()),
            Err(_) => Answer::Bad(format!(
                "command timed out: \"{text}\" timed out after {}",
                crate::pods::go_duration(limit)
            )),
        };
    }
    if let Some(get) = &probe.http_get {
        return match http_get(target, get, limit).await {
            Ok(code) if (200..400).contains(&code) => Answer::Good,
            Ok(code) => Answer::Bad(format!("HTTP probe failed with statuscode: {code}")),
            Err(error) => Answer::Bad(error),
        };
    }
    if let Some(tcp) = &probe.tcp_socket {
        let host = tcp
            .host
            .as_deref()
            .filter(|host| !host.is_empty())
            .unwrap_or(target.host);
        let port = match port(target.container, &tcp.port) {
            Ok(port) => port,
            Err(error) => return Answer::Unknown(error),
        };
        return match tokio::time::timeout(limit, TcpStream::connect((host, port))).await {
            Ok(Ok(_)) => Answer::Good,
            Ok(Err(error)) => Answer::Bad(format!("dial tcp {host}:{port}: connect: {error}")),
            Err(_) => Answer::Bad(format!("dial tcp {host}:{port}: i/o timeout")),
        };
    }
    if let Some(action) = &probe.grpc {
        return super::grpc::ask(target.host, action, limit).await;
    }
    Answer::Good
}

fn port(container: &Container, wanted: &IntOrString) -> Result<u16, String> {
    let number = match wanted {
        IntOrString::Int(number) => i64::from(*number),
        IntOrString::String(name) => {
            let mut named = container.ports.iter().flatten();
            match named.find(|port| port.name.as_ref() == Some(name)) {
                Some(port) => i64::from(port.container_port),
                None => name
                    .parse()
                    .map_err(|_| format!("unknown port name {name}"))?,
            }
        }
    };
    u16::try_from(number)
        .ok()
        .filter(|port| *port > 0)
        .ok_or_else(|| format!("invalid port number: {number}"))
}

/// Probes trust any certificate, as they ask only for life, and stay with the host they asked.
fn client() -> Result<&'static Client, String> {
    static CLIENT: OnceLock<Result<Client, String>> = OnceLock::new();
    let made = CLIENT.get_or_init(|| {
        let policy = redirect::Policy::custom(|attempt| {
            let first = attempt
                .previous()
                .first()
                .and_then(|url| url.host_str().map(str::to_owned));
            if attempt.previous().len() > MOST_REDIRECTS
                || attempt.url().host_str().map(str::to_owned) != first
            {
                attempt.stop()
            } else {
                attempt.follow()
            }
        });
        Client::builder()
            .tls_danger_accept_invalid_certs(true)
            .pool_max_idle_per_host(0)
            .no_proxy()
            .redirect(policy)
            .build()
            .map_err(|error| error.to_string())
    });
    made.as_ref().map_err(Clone::clone)
}

/// Asks by HTTP and gives the code of the answer.
pub(crate) async fn http_get(
    target: Target<'_>,
    get: &HTTPGetAction,
    limit: Duration,
) -> Result<u16, String> {
    let host = get
        .host
        .as_deref()
        .filter(|host| !host.is_empty())
        .unwrap_or(target.host);
    let host = if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    };
    let port = port(target.container, &get.port)?;
    let scheme = get.scheme.as_deref().unwrap_or("HTTP").to_lowercase();
    let path = get.path.as_deref().unwrap_or("/");
    let slash = if path.starts_with('/') { "" } else { "/" };
    let url = Url::parse(&format!("{scheme}://{host}:{port}{slash}{path}"))
        .map_err(|error| error.to_string())?;
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, HeaderValue::from_static("kube-probe/1.36"));
    for header in get.http_headers.iter().flatten() {
        let name = HeaderName::try_from(&header.name).map_err(|error| error.to_string())?;
        let value = HeaderValue::try_from(&header.value).map_err(|error| error.to_string())?;
        headers.insert(name, value);
    }
    let asked = async {
        let answer = client()?
            .get(url.clone())
            .headers(headers)
            .send()
            .await
            .map_err(|error| reason(&url, &error))?;
        let code = answer.status().as_u16();
        let mut body = answer.bytes_stream();
        let mut read = 0;
        while read < LARGEST_BODY
            && let Some(Ok(part)) = body.next().await
        {
            read += part.len();
        }
        Ok(code)
    };
    match tokio::time::timeout(limit, asked).await {
        Ok(answer) => answer,
        Err(_) => Err(format!(
            "Get \"{url}\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        )),
    }
}

fn reason(url: &Url, error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    format!("Get \"{url}\": {cause}")
}
