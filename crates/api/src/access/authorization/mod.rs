//! Whether somebody may do what they ask for.
//!
//! What no rule allows is refused.

mod attributes;
mod escalation;
pub mod node;
pub mod policy;
mod rbac;
pub mod review;
mod rule;
#[cfg(test)]
mod tests;

pub use attributes::{Attributes, Decision, Resource, Target, Verdict};
pub use escalation::check_escalation;
pub use node::NodeGraph;
pub use rbac::{Kind, RbacIndex};
pub use rule::Rule;

use super::authentication::{User, group};
use crate::status::ApiError;

/// Everybody who is asked, in their order: the administrators' group, the nodes, the roles.
#[derive(Debug, Default)]
pub struct Authorizer {
    pub nodes: NodeGraph,
    pub rbac: RbacIndex,
}

impl Authorizer {
    pub fn authorize(&self, attributes: &Attributes) -> Verdict {
        if attributes.user.is_in(group::MASTERS) {
            return Verdict::allow("");
        }
        let node = self.nodes.authorize(attributes);
        if node.decision != Decision::NoOpinion {
            return node;
        }
        let rbac = self.rbac.authorize(attributes);
        if rbac.decision != Decision::NoOpinion {
            return rbac;
        }
        let reasons = [node.reason, rbac.reason];
        let reasons: Vec<String> = reasons
            .into_iter()
            .filter(|text| !text.is_empty())
            .collect();
        Verdict::no_opinion(reasons.join("\n"))
    }

    /// As [`Authorizer::authorize`], with the error that a client gets.
    pub fn require(&self, attributes: &Attributes) -> Result<(), ApiError> {
        let verdict = self.authorize(attributes);
        if verdict.is_allowed() {
            Ok(())
        } else {
            Err(attributes.forbidden(&verdict.reason))
        }
    }

    /// Every rule that applies to a user in a namespace, and what could not be resolved.
    pub fn rules_for(&self, user: &User, namespace: &str) -> (Vec<Rule>, Vec<String>) {
        self.rbac.rules_for(user, namespace)
    }
}
