//! The class of ingresses that name none.

use super::{Attributes, Context, Plugin, edit, storage};
use crate::{status::ApiError, validation::read::Read};

const GROUP: &str = "networking.k8s.io";
const OLD_CLASS: &str = "kubernetes.io/ingress.class";
const IS_DEFAULT: &str = "ingressclass.kubernetes.io/is-default-class";

pub(super) struct DefaultIngressClass;

impl Plugin for DefaultIngressClass {
    fn name(&self) -> &'static str {
        "DefaultIngressClass"
    }

    fn mutate(&self, request: &mut Attributes, context: &Context<'_>) -> Result<(), ApiError> {
        let chosen = request.object["spec"].has("ingressClassName")
            || request.object["metadata"]["annotations"].has(OLD_CLASS);
        if !request.creates(GROUP, "Ingress") || chosen {
            return Ok(());
        }
        let classes = context.objects.list(GROUP, "IngressClass", "");
        if let Some(class) = storage::newest_default(classes, &[IS_DEFAULT])
            && let Some(spec) = request.object.get_mut("spec")
        {
            edit::put(spec, "ingressClassName", class["metadata"].text("name"));
        }
        Ok(())
    }
}
