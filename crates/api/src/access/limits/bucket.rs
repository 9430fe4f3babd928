//! A bucket of tokens for each user: a request takes one, time brings them back.
//!
//! Only users whose bucket is not full are remembered, so that names made up by a stranger cost nothing for long.

use std::collections::HashMap;

use tokio::time::Instant;

/// With so many users the full buckets are thrown out.
const MOST_BUCKETS: usize = 10_000;

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    at: Instant,
}

#[derive(Debug)]
pub(super) struct Buckets {
    rate: f64,
    burst: f64,
    users: HashMap<String, Bucket>,
    /// Sweep when there are so many.
    sweep_at: usize,
}

impl Buckets {
    pub(super) fn new(rate: f64, burst: f64) -> Self {
        Self {
            rate,
            burst,
            users: HashMap::new(),
            sweep_at: MOST_BUCKETS,
        }
    }

    /// Takes a token, or says in how many seconds there will be one.
    pub(super) fn take(&mut self, user: &str, now: Instant) -> Result<(), u32> {
        if self.users.len() >= self.sweep_at && !self.users.contains_key(user) {
            self.sweep(now);
        }
        let (rate, burst) = (self.rate, self.burst);
        if !self.users.contains_key(user) {
            let bucket = Bucket {
                tokens: burst,
                at: now,
            };
            self.users.insert(user.to_owned(), bucket);
        }
        let Some(bucket) = self.users.get_mut(user) else {
            return Ok(());
        };
        bucket.tokens = filled(bucket, rate, burst, now);
        bucket.at = now;
        if bucket.tokens >= 1.0 {
            bucket.tokens -= 1.0;
            return Ok(());
        }
        let seconds = ((1.0 - bucket.tokens) / rate).ceil();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped to a few seconds, never negative"
        )]
        let seconds = seconds.clamp(1.0, 60.0) as u32;
        Err(seconds)
    }

    fn sweep(&mut self, now: Instant) {
        let (rate, burst) = (self.rate, self.burst);
        self.users
            .retain(|_, bucket| filled(bucket, rate, burst, now) < burst);
        // If most are in use, looking at all of them for each newcomer would cost more than it saves.
        self.sweep_at = MOST_BUCKETS.max(self.users.len() * 2);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.users.len()
    }
}

fn filled(bucket: &Bucket, rate: f64, burst: f64, now: Instant) -> f64 {
    let passed = now.saturating_duration_since(bucket.at).as_secs_f64();
    (bucket.tokens + passed * rate).min(burst)
}
