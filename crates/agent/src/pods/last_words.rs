//! What containers left as their last words: a file they wrote, or the end of their log.

use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::Pod;
use transom_host::files::Files;
use transom_runtime::{Container, ContainerState};

use super::{memory::Memory, view::find};
use crate::{observer::Sandboxes, site::Site, volumes::termination_path};

/// As much as a status takes.
const LONGEST: usize = 4096;
const LONGEST_OF_LOG: usize = 2048;
const LINES_OF_LOG: usize = 80;
/// A container may write more than we want; all of it is read up to this.
const LARGEST: u64 = 16 << 20;

/// Reads the words of containers that ended since the last look.
pub(crate) async fn learn(
    site: &Arc<Site>,
    pod: &Arc<Pod>,
    sandboxes: &Sandboxes,
    memory: &Arc<Mutex<Memory>>,
) {
    let lock = || memory.lock().unwrap_or_else(PoisonError::into_inner);
    let ended: Vec<Container> = {
        let memory = lock();
        let containers = sandboxes.iter().flat_map(|one| &one.containers);
        let ended = containers.filter(|one| matches!(one.state, ContainerState::Exited(_)));
        ended
            .filter(|one| !memory.messages.contains_key(&one.id))
            .cloned()
            .collect()
    };
    if ended.is_empty() {
        return;
    }
    let (here, pod) = (Arc::clone(site), Arc::clone(pod));
    let read = move || {
        let words = |one: Container| (one.id.clone(), words(&here, &pod, &one));
        ended.into_iter().map(words).collect::<Vec<_>>()
    };
    match tokio::task::spawn_blocking(read).await {
        Ok(words) => lock().messages.extend(words),
        Err(error) => tracing::warn!(%error, "last words could not be read"),
    }
}

fn words(site: &Site, pod: &Pod, container: &Container) -> String {
    let files = site.options.files.as_ref();
    let path = termination_path(site, pod, &container.name, container.attempt);
    let own = read(files, &path);
    let policy = find(pod, &container.name).and_then(|(_, spec)| spec.termination_message_policy);
    let failed = matches!(&container.state, ContainerState::Exited(ended) if ended.exit_code != 0);
    if own.is_empty() && failed && policy.as_deref() == Some("FallbackToLogsOnError") {
        return end_of_log(&read(files, &container.log_path));
    }
    cut(&own, LONGEST)
}

fn read(files: &dyn Files, path: &camino::Utf8Path) -> String {
    let bytes = files.read(path, LARGEST).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn cut(text: &str, longest: usize) -> String {
    let end = (0..=longest.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end));
    text[..end.unwrap_or(0)].to_owned()
}

/// The last lines of a log in CRI's form, without their stamps.
fn end_of_log(log: &str) -> String {
    let lines: Vec<_> = log
        .lines()
        .filter_map(|line| line.splitn(4, ' ').nth(3))
        .collect();
    let text = lines[lines.len().saturating_sub(LINES_OF_LOG)..].join("\n");
    let mut start = text.len().saturating_sub(LONGEST_OF_LOG);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let ends = if text.is_empty() { "" } else { "\n" };
    format!("{}{ends}", &text[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_has_no_stamps_and_is_not_too_long() {
        let line = |text: &str| format!("2026-01-01T00:00:00Z stderr F {text}\n");
        assert_eq!(end_of_log(&(line("a b") + &line("c"))), "a b\nc\n");
        assert_eq!(end_of_log("garbage\n"), "");
        let many = line(&"ü".repeat(100)).repeat(100);
        assert!(end_of_log(&many).len() <= LONGEST_OF_LOG + 1);
    }
}
