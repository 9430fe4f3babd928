//! Images from registries, by Docker.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use hyper::Method;
use tokio_util::codec::{FramedRead, LinesCodec};

use super::Inner;
use super::client::{Fault, encode, reader};
use super::translate::authority;
use super::wire::{LayerProgress, PullLine};
use crate::{Credentials, Image, Progress, Pull, RuntimeError};

/// Large images and slow lines: a pull is given up after this.
const PULL: Duration = Duration::from_hours(1);
const LONGEST_LINE: usize = 1 << 20;
/// More layers than any image has.
const MOST_LAYERS: usize = 1024;

impl Inner {
    pub(super) async fn pull(&self, pull: &Pull) -> Result<Image, RuntimeError> {
        let failed = |cause: String| RuntimeError::Pull {
            reference: pull.reference.clone(),
            cause,
        };
        let mut attempts: Vec<Option<&Credentials>> = pull.credentials.iter().map(Some).collect();
        if attempts.is_empty() {
            attempts.push(None);
        }
        let mut refusal = String::new();
        for credentials in attempts {
            let pulled = tokio::time::timeout(PULL, self.try_pull(pull, credentials)).await;
            match pulled.unwrap_or_else(|_| Ok(Err("it took too long".to_owned()))) {
                Ok(Ok(())) => {
                    let image = self.image(&pull.reference).await?;
                    return image.ok_or_else(|| failed("it was pulled and is gone".to_owned()));
                }
                Ok(Err(cause)) => refusal = cause,
                Err(fault @ Fault::Unavailable(_)) => {
                    return Err(fault.explain("image", &pull.reference));
                }
                Err(fault) => fault.message().clone_into(&mut refusal),
            }
        }
        Err(failed(refusal))
    }

    /// The inner error is what a registry said.
    async fn try_pull(
        &self,
        pull: &Pull,
        credentials: Option<&Credentials>,
    ) -> Result<Result<(), String>, Fault> {
        let (name, tag) = split(&pull.reference);
        let path = format!(
            "/images/create?fromImage={}&tag={}",
            encode(name),
            encode(tag)
        );
        let headers: Vec<_> = credentials
            .map(|credentials| ("x-registry-auth", authority(credentials)))
            .into_iter()
            .collect();
        let answer = self
            .client
            .stream(Method::POST, &path, Bytes::new(), &headers)
            .await?;
        let codec = LinesCodec::new_with_max_length(LONGEST_LINE);
        let mut lines = FramedRead::new(reader(answer), codec);
        let mut layers: HashMap<String, LayerProgress> = HashMap::new();
        while let Some(line) = lines.next().await {
            let line = line.map_err(|error| Fault::Unavailable(error.to_string()))?;
            let Ok(line) = serde_json::from_str::<PullLine>(&line) else {
                continue;
            };
            if !line.error.is_empty() {
                return Ok(Err(line.error));
            }
            if line.progress.total > 0 && layers.len() < MOST_LAYERS {
                layers.insert(line.id, line.progress);
                if let Some(tell) = &pull.progress {
                    let all = layers.values();
                    tell(all.fold(Progress::default(), |sum, one| Progress {
                        done: sum.done + one.current,
                        total: sum.total + one.total,
                    }));
                }
            }
        }
        Ok(Ok(()))
    }
}

/// A name and what it is of that name: Docker pulls every tag if none is said.
fn split(reference: &str) -> (&str, &str) {
    if let Some((name, digest)) = reference.split_once('@') {
        // Of a tag and a digest the digest decides.
        return (split(name).0, digest);
    }
    match reference.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, tag),
        _ => (reference, "latest"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_a_name_and_a_tag_or_a_digest() {
        assert_eq!(split("nginx"), ("nginx", "latest"));
        assert_eq!(
            split("localhost:5000/a/b"),
            ("localhost:5000/a/b", "latest")
        );
        assert_eq!(split("localhost:5000/a:1"), ("localhost:5000/a", "1"));
        assert_eq!(split("a/b:1@sha256:00"), ("a/b", "sha256:00"));
    }
}
