//! The caches as other parts see them: a look at an object, never a request.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    access::authentication::{Live, Objects},
    state::{Api, cache_key},
};

impl Api {
    /// An object of a built-in kind as the cache has it now.
    pub(crate) fn look(
        &self,
        group: &str,
        plural: &str,
        namespace: &str,
        name: &str,
    ) -> Option<Value> {
        let kinds = self.registry.kinds();
        let kind = kinds.resource(group, "v1", plural)?;
        let cached = self.cache_of(kind).get(&cache_key(kind, namespace, name))?;
        let mut value = cached.value();
        crate::pipeline::from_storage(kind, &mut value);
        Some(value)
    }

    fn live(&self, plural: &str, namespace: &str, name: &str) -> Option<Live> {
        let value = self.look("", plural, namespace, name)?;
        Some(Live::of(&value))
    }
}

impl Objects for Api {
    fn service_account(&self, namespace: &str, name: &str) -> Option<Live> {
        self.live("serviceaccounts", namespace, name)
    }

    fn pod(&self, namespace: &str, name: &str) -> Option<Live> {
        self.live("pods", namespace, name)
    }

    fn secret(&self, namespace: &str, name: &str) -> Option<Live> {
        self.live("secrets", namespace, name)
    }

    fn node(&self, name: &str) -> Option<Live> {
        self.live("nodes", "", name)
    }

    fn whole_secret(&self, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.look("", "secrets", namespace, name).map(Arc::new)
    }
}
