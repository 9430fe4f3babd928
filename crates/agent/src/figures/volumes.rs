//! What the volumes of pods take, as far as the agent makes them. A folder is walked through once a minute at most.

use std::{collections::HashMap, sync::Arc};

use camino::Utf8PathBuf;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use transom_host::files::{Files, Kind};

use super::{PodFigures, Snapshot};
use crate::{site::Site, volumes::own_folders};

/// For how many seconds a walk is good.
const FRESH: i64 = 60;
/// A volume with more entries than this is not measured.
const MOST_ENTRIES: u64 = 50_000;

/// What a volume takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VolumeFigures {
    pub(crate) name: String,
    pub(crate) taken: Timestamp,
    pub(crate) used_bytes: u64,
    pub(crate) entries: u64,
}

/// Gives the pods of a pass what their volumes take.
pub(super) async fn measure(
    site: &Arc<Site>,
    wanted: &[Arc<Pod>],
    pods: &mut [PodFigures],
    before: &Snapshot,
) {
    let now = site.options.clock.now();
    let before: HashMap<_, _> = before
        .pods
        .iter()
        .map(|pod| (pod.uid.as_str(), pod))
        .collect();
    let mut stale: Vec<(usize, Vec<(String, Utf8PathBuf)>)> = Vec::new();
    for (index, figures) in pods.iter_mut().enumerate() {
        let known = before.get(figures.uid.as_str());
        let is_fresh =
            |taken: Timestamp| (0..FRESH).contains(&(now.as_second() - taken.as_second()));
        if let Some(known) = known.filter(|known| known.volumes_taken.is_some_and(is_fresh)) {
            figures.volumes.clone_from(&known.volumes);
            figures.volumes_taken = known.volumes_taken;
            continue;
        }
        let is_meant = |pod: &&Arc<Pod>| pod.metadata.uid.as_ref() == Some(&figures.uid);
        if let Some(pod) = wanted.iter().find(is_meant) {
            stale.push((index, own_folders(site, pod)));
        }
        figures.volumes_taken = Some(now);
    }
    if stale.is_empty() {
        return;
    }
    let files = Arc::clone(&site.options.files);
    let walk = tokio::task::spawn_blocking(move || {
        let walked = |(index, folders): (usize, Vec<(String, Utf8PathBuf)>)| {
            let volumes = folders.into_iter().filter_map(|(name, folder)| {
                let (used_bytes, entries) = usage(files.as_ref(), folder)?;
                Some(VolumeFigures {
                    name,
                    taken: now,
                    used_bytes,
                    entries,
                })
            });
            (index, volumes.collect())
        };
        stale.into_iter().map(walked).collect::<Vec<_>>()
    });
    match walk.await {
        Ok(walked) => {
            for (index, volumes) in walked {
                pods[index].volumes = volumes;
            }
        }
        Err(error) => tracing::warn!(%error, "volumes could not be measured"),
    }
}

/// The bytes and the number of entries below a folder, no link followed; `None` for one that is not there or has too
/// many.
fn usage(files: &dyn Files, folder: Utf8PathBuf) -> Option<(u64, u64)> {
    files.metadata(&folder).ok()?;
    let (mut bytes, mut entries) = (0, 0);
    let mut pending = vec![folder];
    while let Some(folder) = pending.pop() {
        // What goes away while we look is not used any more.
        for entry in files.list(&folder).unwrap_or_default() {
            entries += 1;
            if entries > MOST_ENTRIES {
                return None;
            }
            bytes += entry.metadata.length;
            if entry.metadata.kind == Kind::Dir {
                pending.push(entry.path);
            }
        }
    }
    Some((bytes, entries))
}

#[cfg(test)]
mod tests {
    use transom_host::files::{Access, fake::FakeFiles};
    use transom_model::Os;

    use super::*;

    #[test]
    fn a_folder_takes_what_all_below_it_takes() {
        let files = FakeFiles::new(Os::Linux);
        files.create_dir_all("/v/deep/deeper".into()).unwrap();
        let write = |path: &str, bytes: &[u8]| {
            files
                .write_durable(path.into(), bytes, Access::Public)
                .unwrap();
        };
        write("/v/a", b"12345");
        write("/v/deep/deeper/b", b"123");
        assert_eq!(usage(&files, "/v".into()), Some((8, 4)));
        assert_eq!(usage(&files, "/missing".into()), None);
    }
}
