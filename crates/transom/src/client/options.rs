//! The options that say where objects are and which of them are meant.

use crate::cluster::Cluster;

/// One namespace.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Place {
    /// The namespace to look in, instead of the one that the kubeconfig names
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
}

impl Place {
    /// The namespace that holds in the end.
    pub(crate) fn namespace<'a>(&'a self, cluster: &'a Cluster) -> &'a str {
        let named = self.namespace.as_deref();
        named.unwrap_or_else(|| cluster.client.default_namespace())
    }
}

/// One namespace, or all.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Everywhere {
    #[command(flatten)]
    place: Place,

    /// Look in all namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub(crate) all_namespaces: bool,
}

impl Everywhere {
    /// The namespace that holds in the end; none for all.
    pub(crate) fn namespace<'a>(&'a self, cluster: &'a Cluster) -> Option<&'a str> {
        (!self.all_namespaces).then(|| self.place.namespace(cluster))
    }
}

/// Which objects of a kind.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Selection {
    /// Only objects with these labels, such as `app=web,tier!=test`
    #[arg(short = 'l', long = "selector", value_name = "LABELS")]
    pub(crate) labels: Option<String>,

    /// Only objects with these fields, such as `status.phase=Running`
    #[arg(long = "field-selector", value_name = "FIELDS")]
    pub(crate) fields: Option<String>,
}

impl Selection {
    /// Whether nothing was chosen.
    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_none() && self.fields.is_none()
    }

    /// The same, and only the object with this name.
    pub(crate) fn named(&self, name: &str) -> Self {
        let name = format!("metadata.name={name}");
        let fields = match &self.fields {
            Some(fields) => format!("{fields},{name}"),
            None => name,
        };
        Self {
            labels: self.labels.clone(),
            fields: Some(fields),
        }
    }
}
