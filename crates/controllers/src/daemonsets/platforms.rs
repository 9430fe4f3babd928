//! Which nodes can run the images of a daemon. What is not known of an image or of a node excludes nothing.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, PodSpec, PodTemplateSpec};
use kube::ResourceExt as _;
use transom_model::{
    Platform,
    node::{self, Reported},
};

use crate::workloads::{nodes, pods};

/// What the images of a daemon ask of a node.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// The images of which something is known.
    images: Vec<(String, Arc<Vec<Platform>>)>,
    is_host_process: bool,
}

impl Needs {
    pub(super) fn of(
        template: &PodTemplateSpec,
        known: impl Fn(&str) -> Option<Arc<Vec<Platform>>>,
    ) -> Self {
        let Some(spec) = &template.spec else {
            return Self::default();
        };
        let images = pods::images(spec).filter_map(|image| {
            let platforms = known(&image)?;
            Some((image, platforms))
        });
        Self {
            images: images.collect(),
            is_host_process: is_host_process(spec),
        }
    }

    pub(super) fn are_met_by(&self, node: &Node) -> bool {
        if self.images.is_empty() {
            return true;
        }
        let platform = platform(node);
        self.images.iter().all(|(image, platforms)| {
            node::can_run(platform.as_ref(), platforms, self.is_host_process, || {
                nodes::images(node).binary_search(image).is_ok()
            })
        })
    }
}

fn platform(node: &Node) -> Option<Platform> {
    let reported = nodes::info(node).map_or_else(Reported::default, |info| Reported {
        os: &info.operating_system,
        arch: &info.architecture,
        kernel_version: &info.kernel_version,
    });
    let labels = node.labels();
    node::platform(|name| labels.get(name).map(String::as_str), reported)
}

fn is_host_process(spec: &PodSpec) -> bool {
    let pod = spec.security_context.as_ref();
    let pod = pod.and_then(|context| context.windows_options.as_ref()?.host_process);
    let containers = pods::containers(spec).map(|container| {
        let context = container.security_context.as_ref()?;
        context.windows_options.as_ref()?.host_process
    });
    node::is_host_process(pod, containers)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const LINUX: &str = "linux/amd64";
    const ARM: &str = "linux/arm64";
    const W2019: &str = "windows(10.0.17763)/amd64";
    const W2022: &str = "windows(10.0.20348)/amd64";

    fn node(platform: &str, images: &[&str]) -> Node {
        let platform: Platform = platform.parse().unwrap();
        let build = platform.os_version.map(|version| version.to_string());
        serde_json::from_value(json!({
            "metadata": {"labels": {
                "kubernetes.io/os": platform.os.to_string(),
                "kubernetes.io/arch": platform.arch.to_string(),
                "node.kubernetes.io/windows-build": build.unwrap_or_default(),
            }},
            "status": {"images": [{"names": images}]},
        }))
        .unwrap()
    }

    /// The needs of a daemon, where `app` and `tool` are known.
    fn needs(spec: &Value, app: &[&str], tool: &[&str]) -> Needs {
        let template = serde_json::from_value(json!({ "spec": spec })).unwrap();
        Needs::of(&template, |image| {
            let platforms = match image {
                "docker.io/library/app:1" => app,
                "docker.io/library/tool:1" => tool,
                _ => return None,
            };
            let platforms = platforms.iter().map(|text| text.parse().unwrap());
            Some(Arc::new(platforms.collect()))
        })
    }

    fn container(image: &str) -> Value {
        json!({"name": "c", "image": image})
    }

    fn able(needs: &Needs) -> Vec<&'static str> {
        let mut nodes = vec![LINUX, ARM, W2019, W2022];
        nodes.retain(|platform| needs.are_met_by(&node(platform, &[])));
        nodes
    }

    #[test]
    fn nodes_are_left_out_that_cannot_run_an_image() {
        let spec = json!({"containers": [container("app:1"), container("never-seen:1")]});
        for (platforms, expected) in [
            (&[LINUX][..], &[LINUX][..]),
            (&[LINUX, ARM], &[LINUX, ARM]),
            (&[W2019], &[W2019]),
            (&[W2022], &[W2022]),
            (&[ARM, W2022], &[ARM, W2022]),
            (&["windows/amd64"], &[W2019, W2022]),
        ] {
            let needs = needs(&spec, platforms, &[]);
            assert_eq!(able(&needs), expected, "{platforms:?}");
        }
    }

    #[test]
    fn all_containers_count_and_what_is_not_known_does_not() {
        let both =
            json!({"containers": [container("app:1")], "initContainers": [container("tool:1")]});
        assert_eq!(able(&needs(&both, &[LINUX, W2022], &[LINUX, ARM])), [LINUX]);
        let unknown = json!({"containers": [container("never-seen:1"), {"name": "no image"}]});
        let unknown = needs(&unknown, &[LINUX], &[LINUX]);
        assert_eq!(able(&unknown), [LINUX, ARM, W2019, W2022]);
        let known = needs(&json!({"containers": [container("app:1")]}), &[LINUX], &[]);
        assert!(known.are_met_by(&Node::default()));
    }

    #[test]
    fn what_a_node_has_it_can_run() {
        let needs = needs(&json!({"containers": [container("app:1")]}), &[LINUX], &[]);
        assert!(needs.are_met_by(&node(W2022, &["docker.io/library/app:1"])));
        assert!(!needs.are_met_by(&node(W2022, &["docker.io/library/app:2"])));
    }

    #[test]
    fn programs_of_the_host_need_no_build() {
        let spec = json!({"containers": [container("app:1")],
            "securityContext": {"windowsOptions": {"hostProcess": true}}});
        assert_eq!(able(&needs(&spec, &[W2019], &[])), [W2019, W2022]);
    }
}
