//! Tells of pauses, once for each.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;

use super::{
    decide::{Plan, Waiting},
    view::{Kind, find, full_name},
};
use crate::{events::about_container, site::Site};

#[derive(Debug, Default)]
pub(crate) struct Notices {
    told: BTreeMap<String, Waiting>,
}

impl Notices {
    pub(crate) fn tell(&mut self, site: &Site, pod: &Pod, plan: &Plan) {
        for (name, waiting) in &plan.waiting {
            if self.told.get(name) == Some(waiting) {
                continue;
            }
            self.told.insert(name.clone(), waiting.clone());
            let kind = find(pod, name).map_or(Kind::Main, |(kind, _)| kind);
            let about = about_container(pod, kind, name);
            match waiting.reason.as_str() {
                "CrashLoopBackOff" => {
                    let text = format!(
                        "Back-off restarting failed container {name} in pod {}",
                        full_name(pod)
                    );
                    site.events.warning(about, "BackOff", text);
                }
                "ImagePullBackOff" => {
                    let image = find(pod, name)
                        .and_then(|(_, one)| one.image)
                        .unwrap_or_default();
                    let text = format!("Back-off pulling image \"{image}\"");
                    site.events.normal(about.clone(), "BackOff", text);
                    site.events
                        .warning(about, "Failed", "Error: ImagePullBackOff".to_owned());
                }
                _ => {}
            }
        }
        self.told.retain(|name, _| plan.waiting.contains_key(name));
    }
}
