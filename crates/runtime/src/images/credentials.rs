//! Credentials for registries, from the files that Docker invented.
//!
//! What cannot be read gives no credentials: a pull without any is the answer.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;

use crate::Credentials;

#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    auths: BTreeMap<String, Login>,
}

#[derive(Deserialize)]
struct Login {
    username: Option<String>,
    password: Option<String>,
    auth: Option<String>,
    #[serde(rename = "registrytoken")]
    token: Option<String>,
}

/// Credentials for the registry of an image, from `.dockerconfigjson`.
pub fn from_config(bytes: &[u8], image: &str) -> Vec<Credentials> {
    let config: Option<Config> = serde_json::from_slice(bytes).ok();
    config
        .map(|config| matching(config.auths, image))
        .unwrap_or_default()
}

/// From `.dockercfg`, the form before there were other things in the file.
pub fn from_old_config(bytes: &[u8], image: &str) -> Vec<Credentials> {
    let logins: Option<BTreeMap<String, Login>> = serde_json::from_slice(bytes).ok();
    logins
        .map(|logins| matching(logins, image))
        .unwrap_or_default()
}

/// The longest match first.
fn matching(logins: BTreeMap<String, Login>, image: &str) -> Vec<Credentials> {
    let place = full_name(image);
    let mut found: Vec<_> = logins
        .into_iter()
        .filter(|(registry, _)| is_for(&normal(registry), &place))
        .filter_map(|(registry, login)| Some((registry.len(), credentials(login)?)))
        .collect();
    found.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
    found
        .into_iter()
        .map(|(_, credentials)| credentials)
        .collect()
}

fn credentials(login: Login) -> Option<Credentials> {
    if let Some(token) = login.token.filter(|token| !token.is_empty()) {
        return Some(Credentials::Token(token));
    }
    if let (Some(user), Some(password)) = (login.username, login.password)
        && !user.is_empty()
    {
        return Some(Credentials::Password { user, password });
    }
    let text = STANDARD.decode(login.auth?.trim()).ok()?;
    let text = String::from_utf8(text).ok()?;
    let (user, password) = text.split_once(':')?;
    let password = password.trim_matches('\0').to_owned();
    Some(Credentials::Password {
        user: user.to_owned(),
        password,
    })
}

fn normal(registry: &str) -> String {
    let bare = registry
        .split_once("://")
        .map_or(registry, |(_, rest)| rest)
        .trim_end_matches('/');
    let bare = bare
        .strip_suffix("/v1")
        .or_else(|| bare.strip_suffix("/v2"))
        .unwrap_or(bare);
    match bare {
        "index.docker.io" | "registry-1.docker.io" => "docker.io".to_owned(),
        other => other.to_owned(),
    }
}

/// Registry and path of an image, without tag and digest.
fn full_name(image: &str) -> String {
    let name = image.split('@').next().unwrap_or_default();
    let name = match name.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => name,
    };
    match name.split_once('/') {
        Some((host, _)) if host.contains(['.', ':']) || host == "localhost" => name.to_owned(),
        Some(_) => format!("docker.io/{name}"),
        None => format!("docker.io/library/{name}"),
    }
}

/// The host must match part by part, where `*` stands for any; the path is a prefix.
fn is_for(registry: &str, place: &str) -> bool {
    let (host, path) = registry.split_once('/').unwrap_or((registry, ""));
    let (its_host, its_path) = place.split_once('/').unwrap_or((place, ""));
    let (wanted, actual): (Vec<_>, Vec<_>) =
        (host.split('.').collect(), its_host.split('.').collect());
    wanted.len() == actual.len()
        && wanted
            .iter()
            .zip(&actual)
            .all(|(wanted, actual)| part_matches(wanted, actual))
        && (path.is_empty() || its_path == path || its_path.starts_with(&format!("{path}/")))
}

fn part_matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => {
            text.len() >= before.len() + after.len()
                && text.starts_with(before)
                && text.ends_with(after)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_longest_matching_login_comes_first() {
        let config = json!({"auths": {
            "https://index.docker.io/v1/": {"auth": STANDARD.encode("a:b:c")},
            "registry.example.org": {"username": "u", "password": "p"},
            "registry.example.org/team": {"registrytoken": "t"},
            "*.example.com": {"username": "w", "password": "p"},
            "broken.org": {"auth": "%%%"},
        }});
        let bytes = serde_json::to_vec(&config).unwrap();
        let password = |user: &str, password: &str| Credentials::Password {
            user: user.to_owned(),
            password: password.to_owned(),
        };
        for (image, wanted) in [
            ("nginx", vec![password("a", "b:c")]),
            ("docker.io/x/y:1", vec![password("a", "b:c")]),
            (
                "registry.example.org/team/app@sha256:0",
                vec![Credentials::Token("t".to_owned()), password("u", "p")],
            ),
            ("registry.example.org/teams/app", vec![password("u", "p")]),
            ("a.example.com/app", vec![password("w", "p")]),
            ("a.b.example.com/app", vec![]),
            ("broken.org/app", vec![]),
            ("localhost:5000/app", vec![]),
        ] {
            assert!(from_config(&bytes, image) == wanted, "{image}");
        }
        assert!(from_config(b"not json", "nginx").is_empty());
        assert!(
            from_old_config(
                br#"{"docker.io": {"username": "u", "password": "p"}}"#,
                "nginx"
            ) == [password("u", "p")]
        );
    }
}
