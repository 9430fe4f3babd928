//! Decides whose turn it is to lead.

use std::time::Duration;

use k8s_openapi::{
    api::coordination::v1::LeaseSpec, apimachinery::pkg::apis::meta::v1::MicroTime, jiff::Timestamp,
};

/// How long a lease lasts, in seconds.
const LASTS: i32 = 15;
/// How often it is renewed, or asked for.
pub(super) const RETRY: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Turn {
    /// It is ours, in this form.
    Take(Box<LeaseSpec>),
    /// Another one leads.
    Wait,
}

/// What to do with a lease that has been as it is for a while.
pub(super) fn plan_turn(
    lease: Option<&LeaseSpec>,
    identity: &str,
    unchanged: Duration,
    now: Timestamp,
) -> Turn {
    let mut wanted = lease.cloned().unwrap_or_default();
    let holder = wanted.holder_identity.clone().unwrap_or_default();
    if holder != identity {
        let lasts = u64::try_from(wanted.lease_duration_seconds.unwrap_or(LASTS));
        let lasts = Duration::from_secs(lasts.unwrap_or_default());
        if !holder.is_empty() && unchanged < lasts {
            return Turn::Wait;
        }
        wanted.holder_identity = Some(identity.to_owned());
        wanted.acquire_time = Some(MicroTime(now));
        let before = wanted.lease_transitions.unwrap_or_default();
        wanted.lease_transitions = Some(before.saturating_add(i32::from(lease.is_some())));
    }
    wanted.lease_duration_seconds = Some(LASTS);
    wanted.renew_time = Some(MicroTime(now));
    Turn::Take(Box::new(wanted))
}

/// A lease of ours that nobody holds; `None` if it is not ours.
pub(super) fn plan_release(lease: &LeaseSpec, identity: &str, now: Timestamp) -> Option<LeaseSpec> {
    (lease.holder_identity.as_deref() == Some(identity)).then(|| LeaseSpec {
        holder_identity: Some(String::new()),
        lease_duration_seconds: Some(1),
        renew_time: Some(MicroTime(now)),
        ..lease.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn lease(holder: &str, transitions: i32) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: Some(15),
            lease_transitions: Some(transitions),
            ..LeaseSpec::default()
        }
    }

    /// Holder and number of transitions, if the lease is taken.
    fn taken(lease: Option<&LeaseSpec>, unchanged: u64) -> Option<(String, i32)> {
        match plan_turn(lease, "me", Duration::from_secs(unchanged), NOW) {
            Turn::Wait => None,
            Turn::Take(spec) => {
                assert_eq!(spec.renew_time, Some(MicroTime(NOW)));
                Some((
                    spec.holder_identity.unwrap(),
                    spec.lease_transitions.unwrap(),
                ))
            }
        }
    }

    #[test]
    fn a_lease_is_taken_when_nobody_keeps_it() {
        let me = |transitions| Some(("me".to_owned(), transitions));
        assert_eq!(taken(None, 0), me(0));
        assert_eq!(taken(Some(&lease("other", 3)), 14), None);
        assert_eq!(taken(Some(&lease("other", 3)), 15), me(4));
        assert_eq!(taken(Some(&lease("", 3)), 0), me(4));
        assert_eq!(taken(Some(&lease("me", 3)), 0), me(3));
    }

    #[test]
    fn only_the_own_lease_is_released() {
        assert_eq!(plan_release(&lease("other", 1), "me", NOW), None);
        let free = plan_release(&lease("me", 1), "me", NOW).unwrap();
        assert_eq!(taken(Some(&free), 0), Some(("me".to_owned(), 2)));
    }
}
