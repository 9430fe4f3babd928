//! The HTTP client of downloads: few redirects, and never from an encrypted connection to an open one.

use reqwest::redirect;
use url::Url;

use super::{DownloadError, Policy};

/// Why a redirect is not followed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum RedirectError {
    #[error("more than {limit} redirects")]
    TooMany { limit: usize },
    #[error("from https to http")]
    Downgrade,
}

pub(super) fn build(policy: &Policy) -> Result<reqwest::Client, DownloadError> {
    let limit = policy.redirects;
    let redirects = redirect::Policy::custom(move |attempt| {
        match judge(attempt.previous(), attempt.url(), limit) {
            Ok(()) => attempt.follow(),
            Err(error) => attempt.error(error),
        }
    });
    reqwest::Client::builder()
        .user_agent(concat!("transom/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(policy.connect_timeout)
        .read_timeout(policy.idle_timeout)
        .redirect(redirects)
        .referer(false)
        .build()
        .map_err(|source| DownloadError::Client { source })
}

/// Whether to go on from the addresses so far, the first of which was asked for, to the next.
fn judge(previous: &[Url], next: &Url, limit: usize) -> Result<(), RedirectError> {
    if previous.len() > limit {
        return Err(RedirectError::TooMany { limit });
    }
    if previous.iter().any(|url| url.scheme() == "https") && next.scheme() != "https" {
        return Err(RedirectError::Downgrade);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encrypted_connection_never_leads_to_an_open_one() {
        let open = Url::parse("http://mirror.test/a").expect("an address");
        let encrypted = Url::parse("https://mirror.test/a").expect("an address");
        let go = |previous: &[&Url], next: &Url| {
            let previous: Vec<Url> = previous.iter().copied().cloned().collect();
            judge(&previous, next, 3)
        };
        assert_eq!(go(&[&open], &encrypted), Ok(()));
        assert_eq!(go(&[&open], &open), Ok(()));
        assert_eq!(go(&[&encrypted], &open), Err(RedirectError::Downgrade));
        assert_eq!(
            go(&[&open, &encrypted], &open),
            Err(RedirectError::Downgrade)
        );
        let many = [&encrypted; 4];
        assert_eq!(
            go(&many, &encrypted),
            Err(RedirectError::TooMany { limit: 3 })
        );
    }
}
