//! Images over there.

use bytes::Bytes;
use camino::Utf8Path;
use hyper::{Method, StatusCode};
use transom_host::files::{Files, Native};

use super::Inner;
use super::client::{CALL, encode};
use super::pause;
use super::wire::{Info, InspectedImage, Made};
use crate::{Image, ImageSpace, RuntimeError};

impl Inner {
    pub(super) async fn image(&self, reference: &str) -> Result<Option<Image>, RuntimeError> {
        let path = format!("/images/{}/json", encode(reference));
        match self.client.get::<InspectedImage>(&path).await {
            Ok(found) => Ok(Some(describe(found))),
            // What is no name at all is not here either.
            Err(fault) if fault.is_missing() || fault.is(StatusCode::BAD_REQUEST) => Ok(None),
            Err(fault) => Err(fault.explain("image", reference)),
        }
    }

    pub(super) async fn images(&self) -> Result<Vec<Image>, RuntimeError> {
        let listed = self.client.get::<Vec<Made>>("/images/json").await;
        let listed = listed.map_err(|fault| fault.explain("images", ""))?;
        let mut images = Vec::new();
        for one in listed {
            images.extend(self.image(&one.id).await?);
        }
        Ok(images)
    }

    pub(super) async fn remove_image(&self, id: &str) -> Result<(), RuntimeError> {
        let Some(image) = self.image(id).await? else {
            return Ok(());
        };
        if self.is_used(&image).await? {
            return Err(RuntimeError::Invalid(format!("image {id} is in use")));
        }
        // Its names first: an image of several is refused by its id.
        let names = image.tags.iter().chain(&image.digests);
        for name in names.chain([&image.id]) {
            let path = format!("/images/{}", encode(name));
            match self.client.act(Method::DELETE, &path, CALL).await {
                Err(fault) if !fault.is_missing() => return Err(fault.explain("image", id)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether a container was made from it, ours or another's: taking its names away would be refused too late.
    async fn is_used(&self, image: &Image) -> Result<bool, RuntimeError> {
        let filters = serde_json::json!({ "ancestor": [image.id] }).to_string();
        let path = format!("/containers/json?all=1&filters={}", encode(&filters));
        let users = self.client.get::<Vec<Made>>(&path).await;
        let users = users.map_err(|fault| fault.explain("containers", ""))?;
        Ok(!users.is_empty())
    }

    /// Takes the images of an archive, as `docker save` writes it.
    pub(super) async fn import(&self, archive: Bytes) -> Result<(), RuntimeError> {
        let taken = self.client.upload("/images/load?quiet=1", archive).await;
        let said = taken.map_err(|fault| fault.explain("image", ""))?;
        let said = String::from_utf8_lossy(&said).into_owned();
        if said.contains("\"error\"") {
            return Err(RuntimeError::Invalid(said));
        }
        Ok(())
    }

    pub(super) async fn image_space(&self) -> Result<ImageSpace, RuntimeError> {
        let info = self.client.get::<Info>("/info").await;
        let place = info.map_err(|fault| fault.explain("images", ""))?;
        let place = place.docker_root_dir;
        let space = tokio::task::spawn_blocking(move || Native.free_space(Utf8Path::new(&place)));
        let space = match space.await {
            Ok(Ok(space)) => space,
            Ok(Err(error)) => return Err(RuntimeError::Other(error.to_string())),
            Err(error) => return Err(RuntimeError::Other(error.to_string())),
        };
        // Layers that images share are counted with each: Docker takes minutes to know better.
        let images = self.images().await?;
        Ok(ImageSpace {
            used_bytes: images.iter().map(|image| image.size).sum(),
            capacity_bytes: space.total,
            available_bytes: space.available,
        })
    }
}

fn describe(found: InspectedImage) -> Image {
    Image {
        // Nobody could pull it again.
        pinned: found.repo_tags.iter().any(|tag| tag == pause::NAME),
        id: found.id,
        tags: found.repo_tags,
        digests: found.repo_digests,
        size: found.size,
        user: found.config.user,
        os: found.os,
        architecture: found.architecture,
        os_version: Some(found.os_version).filter(|version| !version.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Docker 20.10 answered about an image that was loaded there, without what nobody reads.
    const LOADED: &str = r#"{"Id":"sha256:fe94","RepoTags":["made.here/tool:1"],"RepoDigests":[],
        "Created":"0001-01-01T00:00:00Z","Config":{"Hostname":"","User":"","Env":null,"Cmd":["/x"]},
        "Architecture":"amd64","Os":"linux","Size":1,"VirtualSize":1,
        "RootFS":{"Type":"layers","Layers":["sha256:3431"]}}"#;

    fn image(answer: &str) -> Image {
        describe(serde_json::from_str(answer).unwrap())
    }

    #[test]
    fn what_was_loaded_here_is_described_with_its_build_if_it_has_one() {
        let windows = LOADED.replace(
            r#""Os":"linux""#,
            r#""Os":"windows","OsVersion":"10.0.20348.3091""#,
        );
        for (answer, expected) in [
            (LOADED, "linux/amd64"),
            (&*windows, "windows(10.0.20348.3091)/amd64"),
        ] {
            let told = image(answer).describe_local().unwrap();
            assert_eq!(told.digest, "sha256:fe94");
            let platforms: Vec<_> = told.platforms.iter().map(ToString::to_string).collect();
            assert_eq!(platforms, [expected]);
        }
    }

    #[test]
    fn of_what_was_pulled_only_this_nodes_part_is_known_and_nothing_is_told() {
        let digests = r#""RepoDigests":["made.here/tool@sha256:498a"]"#;
        let pulled = image(&LOADED.replace(r#""RepoDigests":[]"#, digests));
        assert!(!pulled.is_of_this_node());
        assert_eq!(pulled.describe_local(), None);
    }
}
