//! Namespaces: nothing is made in one that is absent or ends, and some are there for good.

use super::{Attributes, Context, Operation, Outcome, Plugin};
use crate::{
    status::{ApiError, Cause},
    validation::read::Read,
};

const FOR_GOOD: [&str; 3] = ["default", "kube-system", "kube-public"];

pub(super) struct NamespaceLifecycle;

impl Plugin for NamespaceLifecycle {
    fn name(&self) -> &'static str {
        "NamespaceLifecycle"
    }

    fn mutate(&self, request: &mut Attributes, context: &Context<'_>) -> Result<(), ApiError> {
        check(request, context)
    }

    fn validate(
        &self,
        request: &Attributes,
        context: &Context<'_>,
        _: &mut Outcome,
    ) -> Result<(), ApiError> {
        check(request, context)
    }
}

fn check(request: &Attributes, context: &Context<'_>) -> Result<(), ApiError> {
    let is_namespace = request.group.is_empty() && request.kind == "Namespace";
    if is_namespace {
        let deletes = request.operation == Operation::Delete && request.subresource.is_empty();
        if deletes && FOR_GOOD.contains(&request.name.as_str()) {
            return Err(ApiError::forbidden(
                "",
                "namespaces",
                &request.name,
                "this namespace may not be deleted",
            ));
        }
        return Ok(());
    }
    let review =
        request.group == "authorization.k8s.io" && request.kind == "LocalSubjectAccessReview";
    if request.namespace.is_empty() || request.operation == Operation::Delete || review {
        return Ok(());
    }
    let Some(namespace) = context.objects.get("", "Namespace", "", &request.namespace) else {
        return Err(ApiError::not_found("", "namespaces", &request.namespace));
    };
    if request.operation != Operation::Create || namespace["status"].text("phase") != "Terminating"
    {
        return Ok(());
    }
    let mut error = request.refuse(format!(
        "unable to create new content in namespace {} because it is being terminated",
        request.namespace
    ));
    if let Some(details) = &mut error.details {
        details.causes.push(Cause {
            reason: "NamespaceTerminating".to_owned(),
            message: format!("namespace {} is being terminated", request.namespace),
            field: "metadata.namespace".to_owned(),
        });
    }
    Err(error)
}
