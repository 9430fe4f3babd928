//! Random sequences of requests against a small model of what must happen. Invariant: the model knows
//! only the rules of the API: versions grow, stale writes are refused, finalizers hold what is deleted,
//! what changed nothing has no new version.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use proptest::prelude::*;
use serde_json::json;

use crate::served::{Served, named, refusal};

const HOLD: &str = "example.org/hold";

#[derive(Clone, Debug)]
enum Step {
    Create {
        name: u8,
        value: u8,
        held: bool,
    },
    /// Replaces all data, with the version of the last read or one from before.
    Replace {
        name: u8,
        value: u8,
        stale: bool,
    },
    /// Replaces without a version.
    Overwrite {
        name: u8,
        value: u8,
    },
    Merge {
        name: u8,
        key: u8,
        value: u8,
    },
    Label {
        name: u8,
        value: u8,
    },
    Hold {
        name: u8,
        held: bool,
    },
    Delete {
        name: u8,
    },
    List {
        label: u8,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let name = 0..3_u8;
    let value = 0..3_u8;
    let step = prop_oneof![
        4 => (name.clone(), value.clone(), any::<bool>())
            .prop_map(|(name, value, held)| Step::Create { name, value, held }),
        3 => (name.clone(), value.clone(), any::<bool>())
            .prop_map(|(name, value, stale)| Step::Replace { name, value, stale }),
        1 => (name.clone(), value.clone()).prop_map(|(name, value)| Step::Overwrite { name, value }),
        2 => (name.clone(), 0..2_u8, value.clone())
            .prop_map(|(name, key, value)| Step::Merge { name, key, value }),
        2 => (name.clone(), value.clone()).prop_map(|(name, value)| Step::Label { name, value }),
        2 => (name.clone(), any::<bool>()).prop_map(|(name, held)| Step::Hold { name, held }),
        3 => name.prop_map(|name| Step::Delete { name }),
        2 => value.prop_map(|label| Step::List { label }),
    ];
    proptest::collection::vec(step, 1..60)
}

/// What is known of one object that exists.
#[derive(Clone, Debug, PartialEq)]
struct Known {
    uid: String,
    version: u64,
    data: BTreeMap<String, String>,
    label: Option<String>,
    held: bool,
    leaving: bool,
}

/// The objects, and versions that were replaced.
#[derive(Default)]
struct Model {
    objects: BTreeMap<String, Known>,
    old: BTreeMap<String, u64>,
    latest: u64,
}

fn name_of(name: u8) -> String {
    format!("object-{name}")
}

fn data_of(value: u8) -> BTreeMap<String, String> {
    [("a".to_owned(), value.to_string())].into()
}

fn version_of(map: &ConfigMap) -> u64 {
    map.resource_version().unwrap().parse().unwrap()
}

fn observed(map: &ConfigMap) -> Known {
    Known {
        uid: map.uid().unwrap(),
        version: version_of(map),
        data: map.data.clone().unwrap_or_default(),
        label: map.labels().get("label").cloned(),
        held: map.finalizers().iter().any(|name| name == HOLD),
        leaving: map.metadata.deletion_timestamp.is_some(),
    }
}

impl Known {
    /// The object as a client sends it.
    fn request(&self, name: &str, version: Option<u64>) -> ConfigMap {
        let mut metadata = named(name);
        metadata.resource_version = version.map(|version| version.to_string());
        metadata.labels = self
            .label
            .clone()
            .map(|value| [("label".to_owned(), value)].into());
        metadata.finalizers = self.held.then(|| vec![HOLD.to_owned()]);
        ConfigMap {
            metadata,
            data: Some(self.data.clone()),
            ..ConfigMap::default()
        }
    }
}

impl Model {
    /// Compares the answer of a write with the object that must be there now.
    fn wrote(&mut self, name: &str, before: &Known, expected: Known, answer: &ConfigMap) {
        let seen = observed(answer);
        let changed = Known {
            version: before.version,
            ..expected.clone()
        } != *before;
        if changed {
            assert!(seen.version > self.latest, "{name}: versions grow");
            self.old.insert(name.to_owned(), before.version);
            self.latest = seen.version;
        } else {
            assert_eq!(seen.version, before.version, "{name}: nothing changed");
        }
        assert_eq!(
            Known {
                version: seen.version,
                ..expected
            },
            seen,
            "{name}"
        );
        if seen.leaving && !seen.held {
            self.objects.remove(name);
        } else {
            self.objects.insert(name.to_owned(), seen);
        }
    }

    /// Checks a write to an object, or that there is none.
    fn check(
        &mut self,
        name: &str,
        result: Result<ConfigMap, kube::Error>,
        change: impl FnOnce(&mut Known),
    ) {
        let Some(before) = self.objects.get(name).cloned() else {
            assert_eq!(refusal(result), (404, "NotFound".to_owned()), "{name}");
            return;
        };
        let mut expected = before.clone();
        change(&mut expected);
        self.wrote(name, &before, expected, &result.unwrap());
    }

    async fn create(&mut self, maps: &Api<ConfigMap>, name: &str, value: u8, held: bool) {
        let wanted = Known {
            uid: String::new(),
            version: 0,
            data: data_of(value),
            label: None,
            held,
            leaving: false,
        };
        let result = maps
            .create(&PostParams::default(), &wanted.request(name, None))
            .await;
        if self.objects.contains_key(name) {
            assert_eq!(refusal(result), (409, "AlreadyExists".to_owned()), "{name}");
            return;
        }
        let seen = observed(&result.unwrap());
        assert!(seen.version > self.latest, "{name}: versions grow");
        self.latest = seen.version;
        let uid = seen.uid.clone();
        assert_eq!(
            Known {
                uid,
                version: seen.version,
                ..wanted
            },
            seen
        );
        self.objects.insert(name.to_owned(), seen);
    }

    async fn replace(&mut self, maps: &Api<ConfigMap>, name: &str, value: u8, stale: bool) {
        let known = self.objects.get(name).cloned();
        let old = self.old.get(name).copied();
        let mut wanted = known.clone().unwrap_or(Known {
            uid: String::new(),
            version: 1,
            data: BTreeMap::new(),
            label: None,
            held: false,
            leaving: false,
        });
        wanted.data = data_of(value);
        let version = if stale {
            old.unwrap_or(1)
        } else {
            wanted.version
        };
        let request = wanted.request(name, Some(version));
        let result = maps.replace(name, &PostParams::default(), &request).await;
        match known {
            Some(known) if known.version != version => {
                assert_eq!(refusal(result), (409, "Conflict".to_owned()), "{name}");
            }
            _ => self.check(name, result, |known| known.data = data_of(value)),
        }
    }

    async fn delete(&mut self, maps: &Api<ConfigMap>, name: &str) {
        let result = maps.delete(name, &DeleteParams::default()).await;
        let Some(known) = self.objects.get(name).cloned() else {
            assert_eq!(refusal(result), (404, "NotFound".to_owned()), "{name}");
            return;
        };
        result.unwrap();
        let left = maps.get_opt(name).await.unwrap();
        if !known.held {
            assert!(left.is_none(), "{name} is deleted");
            self.objects.remove(name);
            self.old.insert(name.to_owned(), known.version);
            return;
        }
        let expected = Known {
            leaving: true,
            ..known.clone()
        };
        self.wrote(name, &known, expected, &left.unwrap());
    }

    async fn list(&self, maps: &Api<ConfigMap>, label: u8) {
        let all = maps.list(&ListParams::default()).await.unwrap();
        let seen: BTreeMap<String, Known> = all
            .iter()
            .map(|map| (map.name_any(), observed(map)))
            .collect();
        assert_eq!(seen, self.objects);
        let version: u64 = all.metadata.resource_version.unwrap().parse().unwrap();
        assert!(
            version >= self.latest,
            "a list is not older than what was written"
        );
        let selector = ListParams::default().labels(&format!("label={label}"));
        let selected = maps.list(&selector).await.unwrap();
        let expected: Vec<&String> = self
            .objects
            .iter()
            .filter(|(_, known)| known.label == Some(label.to_string()))
            .map(|(name, _)| name)
            .collect();
        let names: Vec<String> = selected.iter().map(ResourceExt::name_any).collect();
        assert_eq!(names.iter().collect::<Vec<_>>(), expected);
    }

    async fn take(&mut self, maps: &Api<ConfigMap>, step: Step) {
        let options = PatchParams::default();
        match step {
            Step::Create { name, value, held } => {
                self.create(maps, &name_of(name), value, held).await;
            }
            Step::Replace { name, value, stale } => {
                self.replace(maps, &name_of(name), value, stale).await;
            }
            Step::Overwrite { name, value } => {
                let name = name_of(name);
                let known = self.objects.get(&name);
                let mut request = known.map_or_else(
                    || ConfigMap {
                        metadata: named(&name),
                        ..ConfigMap::default()
                    },
                    |known| known.request(&name, None),
                );
                request.data = Some(data_of(value));
                let result = maps.replace(&name, &PostParams::default(), &request).await;
                self.check(&name, result, |known| known.data = data_of(value));
            }
            Step::Merge { name, key, value } => {
                let (name, key) = (name_of(name), format!("key-{key}"));
                // The last value takes the entry away.
                let wanted = (value < 2).then(|| value.to_string());
                let patch = Patch::Merge(json!({"data": {key.clone(): wanted}}));
                let result = maps.patch(&name, &options, &patch).await;
                self.check(&name, result, |known| {
                    match wanted {
                        Some(value) => known.data.insert(key, value),
                        None => known.data.remove(&key),
                    };
                });
            }
            Step::Label { name, value } => {
                let name = name_of(name);
                let label = Some(value.to_string());
                let patch = Patch::Strategic(json!({"metadata": {"labels": {"label": label}}}));
                let result = maps.patch(&name, &options, &patch).await;
                self.check(&name, result, |known| known.label = label);
            }
            Step::Hold { name, held } => self.hold(maps, &name_of(name), held).await,
            Step::Delete { name } => self.delete(maps, &name_of(name)).await,
            Step::List { label } => self.list(maps, label).await,
        }
    }

    /// Sets or takes away the finalizer; nothing may be held anew that is leaving.
    async fn hold(&mut self, maps: &Api<ConfigMap>, name: &str, held: bool) {
        let wanted = held.then_some([HOLD]);
        let patch = Patch::Merge(json!({"metadata": {"finalizers": wanted}}));
        let result = maps.patch(name, &PatchParams::default(), &patch).await;
        self.check(name, result, |known| known.held = held);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_requests_ends_as_the_rules_say(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let served = Served::new().await;
            let maps: Api<ConfigMap> = Api::default_namespaced(served.client());
            let mut model = Model::default();
            for step in steps {
                model.take(&maps, step).await;
            }
            model.list(&maps, 0).await;
        });
    }
}
