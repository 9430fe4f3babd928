//! Waiting for something to become true. A wait is always bounded, and one that fails says what it
//! waited for, for how long, and what the last try answered.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

/// Time between the first two tries; it doubles until it is [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(64);

/// Calls `attempt` until it succeeds and returns its value; fails once `timeout` has passed.
///
/// `what` completes the sentence "waited in vain for …".
pub fn eventually<T>(
    what: &str,
    timeout: Duration,
    mut attempt: impl FnMut() -> Result<T>,
) -> Result<T> {
    let deadline = Instant::now() + timeout;
    let mut pause = FIRST_PAUSE;
    loop {
        let error = match attempt() {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if Instant::now() >= deadline {
            return Err(anyhow!(
                "waited in vain for {what}, {timeout:?} long; the last try said: {error:#}"
            ));
        }
        thread::sleep(pause.min(deadline.saturating_duration_since(Instant::now())));
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn the_value_of_the_first_try_that_succeeds_is_returned() {
        let mut tries = 0;
        let value = eventually("the third try", Duration::from_secs(5), || {
            tries += 1;
            if tries < 3 {
                bail!("only {tries}")
            }
            Ok(tries)
        });
        assert_eq!(value.unwrap(), 3);
    }

    #[test]
    fn a_wait_in_vain_names_its_aim_and_the_last_error() {
        let outcome: Result<()> = eventually("the moon", Duration::from_millis(30), || {
            bail!("still cloudy")
        });
        assert_eq!(
            outcome.unwrap_err().to_string(),
            "waited in vain for the moon, 30ms long; the last try said: still cloudy"
        );
    }
}
