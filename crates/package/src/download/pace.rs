//! The pauses between attempts: each up to twice as long as the one before, with chance in it so that
//! many nodes do not come back together. Time and chance come from outside.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use super::Policy;

/// Time and chance.
pub trait Pace: Send + Sync {
    /// A number from 0 to 1.
    fn jitter(&self) -> f64;
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// The real time, and chance that is good enough.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealPace {}

impl Pace for RealPace {
    fn jitter(&self) -> f64 {
        let (high, _) = uuid::Uuid::new_v4().as_u64_pair();
        // 32 bits of chance are exact in a float.
        f64::from(u32::try_from(high >> 32).unwrap_or_default()) / f64::from(u32::MAX)
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// How long to wait after so many failures in a row: what the server asks for, within bounds, or
/// between half and all of the doubled pause.
pub(super) fn pause(
    policy: &Policy,
    failures: u32,
    asked: Option<Duration>,
    jitter: f64,
) -> Duration {
    let doublings = failures.saturating_sub(1).min(20);
    let full = policy
        .first_pause
        .saturating_mul(1 << doublings)
        .min(policy.longest_pause);
    let own = full.mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0);
    match asked {
        Some(asked) => asked.min(policy.longest_asked_pause).max(own),
        None => own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_an_end_and_chance_shortens_them() {
        let policy = Policy::default();
        let at = |failures, jitter| pause(&policy, failures, None, jitter);
        assert_eq!(at(1, 1.0), Duration::from_millis(500));
        assert_eq!(at(2, 1.0), Duration::from_secs(1));
        assert_eq!(at(2, 0.0), Duration::from_millis(500));
        assert_eq!(at(60, 1.0), policy.longest_pause);
    }

    #[test]
    fn what_a_server_asks_for_is_heard_within_bounds() {
        let policy = Policy::default();
        let asked = |seconds| pause(&policy, 1, Some(Duration::from_secs(seconds)), 1.0);
        assert_eq!(asked(7), Duration::from_secs(7));
        assert_eq!(asked(0), Duration::from_millis(500));
        assert_eq!(asked(100_000), policy.longest_asked_pause);
    }

    #[test]
    fn chance_stays_in_its_bounds() {
        for _ in 0..1000 {
            assert!((0.0..=1.0).contains(&RealPace::default().jitter()));
        }
    }
}
