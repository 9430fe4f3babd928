//! Pods that take more of the disk than they may: they go, whether the disk is full or not. Pure.

use k8s_openapi::{
    api::core::v1::{Pod, PodSpec},
    apimachinery::pkg::api::resource::Quantity,
};

use crate::{figures::PodFigures, quantity};

const STORAGE: &str = "ephemeral-storage";

fn bytes(limit: &Quantity) -> Option<u64> {
    u64::try_from(quantity::millis(limit)? / 1000).ok()
}

/// Why a pod has to go for what it wrote, in kubelet's words; `None` for one that keeps its limits.
pub(super) fn exceeded(pod: &Pod, figures: &PodFigures) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    of_folders(spec, figures).or_else(|| of_containers(spec, figures))
}

fn of_folders(spec: &PodSpec, figures: &PodFigures) -> Option<String> {
    spec.volumes.iter().flatten().find_map(|volume| {
        let limit = volume.empty_dir.as_ref()?.size_limit.as_ref()?;
        let used = figures.volumes.iter().find(|one| one.name == volume.name)?;
        let most = bytes(limit).filter(|most| *most > 0)?;
        (used.used_bytes > most).then(|| {
            format!(
                "Usage of EmptyDir volume \"{}\" exceeds the limit \"{}\". ",
                volume.name, limit.0
            )
        })
    })
}

fn of_containers(spec: &PodSpec, figures: &PodFigures) -> Option<String> {
    spec.containers.iter().find_map(|container| {
        let limits = container.resources.as_ref()?.limits.as_ref()?;
        let limit = limits.get(STORAGE)?;
        let found = figures.containers.iter();
        let stats = &found
            .clone()
            .find(|one| one.stats.name == container.name)?
            .stats;
        let used: u64 = [stats.writable, stats.logs]
            .iter()
            .flatten()
            .map(|usage| usage.used_bytes)
            .sum();
        (used > bytes(limit)?).then(|| {
            format!(
                "Container {} exceeded its local ephemeral storage limit \"{}\". ",
                container.name, limit.0
            )
        })
    })
}
