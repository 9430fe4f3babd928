//! Images over there.

use camino::Utf8Path;
use serde::Deserialize;
use transom_host::files::{Files, Native};
use transom_model::os::Os;

use super::Inner;
use super::client::{CALL, explain, is_missing};
use super::wire::{
    AuthConfig, Empty, ImageFilesystemsResponse, ImageRequest, ImageSpec, ImageStatusResponse,
    ListImagesResponse, ListedImage, PullImageRequest, PullImageResponse, RemoveImageRequest,
};
use crate::{Credentials, Image, ImageSpace, Pull, RuntimeError};
use std::collections::HashMap;
use std::time::Duration;

/// Large images and slow lines: a pull is given up after this.
const PULL: Duration = Duration::from_hours(1);

/// What an image is made for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Platform {
    os: String,
    architecture: String,
    #[serde(rename = "os.version")]
    os_version: Option<String>,
}

/// What containerd adds to the status of an image when it is asked to.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Info {
    #[serde(rename = "imageSpec")]
    spec: Platform,
}

impl Inner {
    pub(super) async fn image(&self, reference: &str) -> Result<Option<Image>, RuntimeError> {
        let request = ImageRequest {
            image: Some(ImageSpec {
                image: reference.to_owned(),
            }),
            verbose: true,
        };
        let path = "/runtime.v1.ImageService/ImageStatus";
        let answer: Result<ImageStatusResponse, _> = self.client.call(path, request, CALL).await;
        let answer = answer.map_err(|status| explain("image", reference, &status))?;
        let Some(image) = answer.image else {
            return Ok(None);
        };
        let platform = self.complete(platform(&answer.info));
        let id = image.id.clone();
        self.known().platforms.insert(id, platform.clone());
        Ok(Some(describe(image, platform)))
    }

    /// A runtime that does not say what an image is for has those of its own node.
    fn complete(&self, platform: Platform) -> Platform {
        if !platform.os.is_empty() {
            return platform;
        }
        Platform {
            os: match self.config.os {
                Os::Linux => "linux".to_owned(),
                Os::Windows => "windows".to_owned(),
            },
            ..platform
        }
    }

    pub(super) async fn images(&self) -> Result<Vec<Image>, RuntimeError> {
        let path = "/runtime.v1.ImageService/ListImages";
        let listed: Result<ListImagesResponse, _> = self.client.call(path, Empty {}, CALL).await;
        let listed = listed.map_err(|status| explain("images", "", &status))?;
        let mut images = Vec::new();
        for image in listed.images {
            let known = self.known().platforms.get(&image.id).cloned();
            match known {
                Some(platform) => images.push(describe(image, platform)),
                None => images.extend(self.image(&image.id).await?),
            }
        }
        Ok(images)
    }

    pub(super) async fn pull(&self, pull: &Pull) -> Result<Image, RuntimeError> {
        let failed = |cause: String| RuntimeError::Pull {
            reference: pull.reference.clone(),
            cause,
        };
        let mut attempts: Vec<Option<AuthConfig>> =
            pull.credentials.iter().map(|one| Some(auth(one))).collect();
        if attempts.is_empty() {
            attempts.push(None);
        }
        let mut refusal = String::new();
        for auth in attempts {
            let request = PullImageRequest {
                image: Some(ImageSpec {
                    image: pull.reference.clone(),
                }),
                auth,
            };
            let path = "/runtime.v1.ImageService/PullImage";
            let pulled: Result<PullImageResponse, _> = self.client.call(path, request, PULL).await;
            match pulled {
                Ok(pulled) => {
                    let image = self.image(&pulled.image_ref).await?;
                    return image.ok_or_else(|| failed("it was pulled and is gone".to_owned()));
                }
                Err(status) if status.code() == tonic::Code::Unavailable => {
                    return Err(explain("image", &pull.reference, &status));
                }
                Err(status) => status.message().clone_into(&mut refusal),
            }
        }
        Err(failed(refusal))
    }

    pub(super) async fn remove_image(&self, id: &str) -> Result<(), RuntimeError> {
        let image = self.image(id).await?;
        let Some(image) = image else {
            return Ok(());
        };
        let containers = self.containers("").await?;
        let used = containers.iter().any(|one| {
            let used = super::translate::kept(&one.annotations).image;
            used == image.id || image.tags.contains(&used) || image.digests.contains(&used)
        });
        if used {
            return Err(RuntimeError::Invalid(format!("image {id} is in use")));
        }
        let request = RemoveImageRequest {
            image: Some(ImageSpec {
                image: image.id.clone(),
            }),
        };
        let path = "/runtime.v1.ImageService/RemoveImage";
        let removed: Result<Empty, _> = self.client.call(path, request, CALL).await;
        match removed {
            Ok(Empty {}) => {}
            Err(status) if is_missing(&status) => {}
            Err(status) => return Err(explain("image", id, &status)),
        }
        self.known().platforms.remove(&image.id);
        Ok(())
    }

    pub(super) async fn image_space(&self) -> Result<ImageSpace, RuntimeError> {
        let path = "/runtime.v1.ImageService/ImageFsInfo";
        let told: Result<ImageFilesystemsResponse, _> =
            self.client.call(path, Empty {}, CALL).await;
        let told = told.map_err(|status| explain("images", "", &status))?;
        let Some(first) = told.images.into_iter().next() else {
            let text = "the container runtime says nothing about its disk";
            return Err(RuntimeError::NotSupported(text.to_owned()));
        };
        let place = first.id.unwrap_or_default().mountpoint;
        let space = tokio::task::spawn_blocking(move || {
            let place = Utf8Path::new(&place);
            // It may tell a folder that is made with the first image.
            let there = place
                .ancestors()
                .find(|folder| folder.is_dir())
                .unwrap_or(place);
            Native.free_space(there)
        });
        let space = match space.await {
            Ok(Ok(space)) => space,
            Ok(Err(error)) => return Err(RuntimeError::Other(error.to_string())),
            Err(error) => return Err(RuntimeError::Other(error.to_string())),
        };
        Ok(ImageSpace {
            used_bytes: first.used_bytes.map_or(0, |bytes| bytes.value),
            capacity_bytes: space.total,
            available_bytes: space.available,
        })
    }
}

/// What the status of an image says that it is for, which is nothing where the runtime does not say it.
fn platform(info: &HashMap<String, String>) -> Platform {
    let info = info.get("info").map_or("{}", String::as_str);
    let info: Info = serde_json::from_str(info).unwrap_or_default();
    info.spec
}

fn auth(credentials: &Credentials) -> AuthConfig {
    match credentials {
        Credentials::Password { user, password } => AuthConfig {
            user: user.clone(),
            password: password.clone(),
            registry_token: String::new(),
        },
        Credentials::Token(token) => AuthConfig {
            registry_token: token.clone(),
            ..AuthConfig::default()
        },
    }
}

fn describe(image: ListedImage, platform: Platform) -> Image {
    Image {
        id: image.id,
        tags: image.tags,
        digests: image.digests,
        size: image.size,
        user: image
            .user
            .map_or(image.user_name, |user| user.value.to_string()),
        os: platform.os,
        architecture: platform.architecture,
        os_version: platform.os_version.filter(|version| !version.is_empty()),
        pinned: image.pinned,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What containerd 1.6 answered about an image for Windows that was imported there, digests shortened.
    const WINDOWS: &str = r#"{"chainID":"sha256:04e6","imageSpec":{"architecture":"amd64","os":"windows",
        "os.version":"10.0.20348.3091","config":{"Cmd":["/x"]},
        "rootfs":{"type":"layers","diff_ids":["sha256:04e6"]}}}"#;

    fn image(info: &str, digests: &[&str]) -> Image {
        let info = HashMap::from([("info".to_owned(), info.to_owned())]);
        let listed = ListedImage {
            id: "sha256:1".to_owned(),
            digests: digests.iter().map(|&digest| digest.to_owned()).collect(),
            ..ListedImage::default()
        };
        describe(listed, platform(&info))
    }

    #[test]
    fn what_was_loaded_here_is_described_with_its_build() {
        let told = image(WINDOWS, &[]).describe_local().unwrap();
        assert_eq!(told.digest, "sha256:1");
        let platforms: Vec<_> = told.platforms.iter().map(ToString::to_string).collect();
        assert_eq!(platforms, ["windows(10.0.20348.3091)/amd64"]);
    }

    #[test]
    fn what_has_a_registry_or_says_nothing_is_not_described() {
        let pulled = image(WINDOWS, &["registry.example/app@sha256:2"]);
        assert_eq!(pulled.describe_local(), None);
        for silent in ["{}", "", r#"{"imageSpec": {}}"#] {
            assert_eq!(image(silent, &[]).describe_local(), None, "{silent}");
        }
    }
}
