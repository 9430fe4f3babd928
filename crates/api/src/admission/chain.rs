//! The order of the plugins.

use super::{
    Attributes, Context, Outcome, Plugin, accounts, certificates, ingress, lifecycle, limits,
    nodes, priority, quota, runtime, security, storage,
};
use crate::status::ApiError;

/// All plugins, in the order in which they run.
pub struct Chain {
    plugins: Vec<Box<dyn Plugin>>,
}

impl Chain {
    /// The built-in plugins in upstream's order.
    pub fn built_in() -> Self {
        Self {
            plugins: vec![
                Box::new(lifecycle::NamespaceLifecycle),
                Box::new(limits::LimitRanger),
                Box::new(accounts::ServiceAccount),
                Box::new(nodes::NodeRestriction),
                Box::new(nodes::TaintNodesByCondition),
                Box::new(security::PodSecurity),
                Box::new(priority::Priority),
                Box::new(priority::DefaultTolerationSeconds),
                Box::new(storage::DefaultStorageClass),
                Box::new(storage::StorageObjectInUseProtection),
                Box::new(storage::PersistentVolumeClaimResize),
                Box::new(runtime::RuntimeClass),
                Box::new(certificates::CertificateApproval),
                Box::new(certificates::CertificateSigning),
                Box::new(certificates::CertificateSubjectRestriction),
                Box::new(ingress::DefaultIngressClass),
                Box::new(quota::ResourceQuota),
            ],
        }
    }

    /// Puts a plugin before the quotas, which come last since they count what the others made.
    #[must_use]
    pub fn with(mut self, plugin: Box<dyn Plugin>) -> Self {
        let last = self.plugins.len().saturating_sub(1);
        self.plugins.insert(last, plugin);
        self
    }

    pub fn names(&self) -> Vec<&'static str> {
        self.plugins.iter().map(|plugin| plugin.name()).collect()
    }

    /// Lets every plugin complete the object. It must be validated against its rules afterwards.
    pub fn mutate(&self, request: &mut Attributes, context: &Context<'_>) -> Result<(), ApiError> {
        self.plugins
            .iter()
            .try_for_each(|plugin| plugin.mutate(request, context))
    }

    /// Lets every plugin decide. An error of one ends the request.
    pub fn validate(
        &self,
        request: &Attributes,
        context: &Context<'_>,
    ) -> Result<Outcome, ApiError> {
        let mut outcome = Outcome::default();
        for plugin in &self.plugins {
            plugin.validate(request, context, &mut outcome)?;
        }
        Ok(outcome)
    }
}
