//! Sets that were recorded when the schema was another, made to fit the schema there is.
//!
//! Only definitions of custom resources change. A place that became one value is owned by who owned a part of
//! it. A place that got parts is left as it is: its owner owns the parts when it writes them again.

use super::{
    place::{Parts, Place},
    set::{FieldSet, Node},
};

/// The set that says the same of objects of this type, if it is another one.
pub(super) fn reconcile(place: Place, set: &FieldSet) -> Option<FieldSet> {
    if set
        .iter()
        .all(|(element, node)| reconciled(place.step(element).0, node).is_none())
    {
        return None;
    }
    let steps = set.iter().map(|(element, node)| {
        let (inner, _) = place.step(element);
        let node = reconciled(inner, node).unwrap_or_else(|| node.clone());
        (element.clone(), node)
    });
    Some(FieldSet::of_steps(steps.collect()))
}

fn reconciled(place: Place, node: &Node) -> Option<Node> {
    if node.below.is_empty() {
        return None;
    }
    if matches!(place.parts(), Parts::Whole) {
        return Some(Node::member());
    }
    Some(Node {
        member: node.member,
        below: reconcile(place, &node.below)?,
    })
}
