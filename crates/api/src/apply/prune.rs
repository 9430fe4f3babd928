//! What an applier applied before and does not apply any more goes, unless somebody else owns it.

use serde_json::Value;

use super::{
    extract::extract_known,
    managed::Managed,
    place::Place,
    remove::{remove, with_named_fields},
    set::FieldSet,
};

/// The merged object without what only the applier owned by its last request. `managed` has what it owns now.
pub(super) fn prune(place: Place, merged: Value, last: &FieldSet, managed: &Managed) -> Value {
    if last.is_empty() {
        return merged;
    }
    let last = with_named_fields(place, last);
    let all = with_named_fields(place, &extract_known(place, &merged));
    let mut kept = {
        let first = remove(place, &merged, &last);
        with_named_fields(place, &extract_known(place, &first))
    };
    // What anybody owns stays, the applier's new request included.
    for holding in managed.entries.values() {
        kept = kept.union(&with_named_fields(place, &holding.fields));
    }
    let owned = remove(place, &merged, &all.difference(&kept));
    // And what the applier did not have stays, owned or not.
    let left = with_named_fields(place, &extract_known(place, &owned));
    remove(place, &merged, &all.difference(&left).intersection(&last))
}
