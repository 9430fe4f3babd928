//! Downloads: resumed, bounded, retried with an end. Invariant: nothing is seen under its name before
//! its length and digest were read back from the disk and found right.

mod attempt;
mod client;
mod digest;
mod error;
mod file;
mod http;
mod pace;
mod part;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use transom_host::files::{Files as _, Native};
use url::Url;

pub use attempt::Interruption;
pub use digest::{Digest, DigestError, Digests, digest_file};
pub use error::DownloadError;
pub use pace::{Pace, RealPace};

pub(crate) use error::shown;

use attempt::Attempt;
use part::Part;

/// What to fetch, where to, and what it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// `http`, `https` or `file`.
    pub url: Url,
    /// The folder must exist. Beside the file, while it is being fetched, there may be files of its
    /// name with `.part`, `.part.json` and `.lock` behind it.
    pub destination: Utf8PathBuf,
    /// Without a digest the content is taken as it comes: only for what is signed by other means.
    pub digest: Option<Digest>,
    pub length: Option<u64>,
    /// More bytes than this are never accepted, whatever the server says.
    pub limit: u64,
}

/// A file that was fetched and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Downloaded {
    pub path: Utf8PathBuf,
    /// In lower-case hexadecimal.
    pub sha256: String,
    pub length: u64,
}

/// What happens during a download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// So many bytes are on the disk.
    Progress { done: u64, total: Option<u64> },
    /// The transfer broke off and goes on after a pause.
    Retry { after: Duration, why: String },
}

/// Called with each event; must be quick.
pub type Listener<'a> = &'a (dyn Fn(Event) + Send + Sync);

/// How patient a download is. There is no limit on the whole time: large files take long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    pub connect_timeout: Duration,
    /// How long a server may be silent.
    pub idle_timeout: Duration,
    /// How many attempts in a row may bring nothing.
    pub attempts: u32,
    /// How many attempts there are in all, even if each brings a little.
    pub total_attempts: u32,
    pub first_pause: Duration,
    pub longest_pause: Duration,
    /// What `Retry-After` can ask for at most.
    pub longest_asked_pause: Duration,
    pub redirects: usize,
    /// How long another download of the same file is waited for.
    pub lock_wait: Duration,
    /// Bytes of the disk that a download never takes.
    pub keep_free: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(15),
            idle_timeout: Duration::from_mins(1),
            attempts: 6,
            total_attempts: 100,
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(30),
            longest_asked_pause: Duration::from_mins(2),
            redirects: 8,
            lock_wait: Duration::from_mins(10),
            keep_free: 16 << 20,
        }
    }
}

/// Fetches files. Clones share connections.
#[derive(Clone)]
pub struct Downloader {
    client: reqwest::Client,
    policy: Policy,
    pace: Arc<dyn Pace>,
}

impl fmt::Debug for Downloader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Downloader")
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

impl Downloader {
    pub fn new(policy: Policy) -> Result<Self, DownloadError> {
        Self::with_pace(policy, Arc::new(RealPace::default()))
    }

    /// For tests that should neither wait nor depend on chance.
    pub fn with_pace(policy: Policy, pace: Arc<dyn Pace>) -> Result<Self, DownloadError> {
        let client = client::build(&policy)?;
        Ok(Self {
            client,
            policy,
            pace,
        })
    }

    /// Fetches a file, going on where an earlier attempt of whichever process stopped. Does nothing
    /// when the file is there with the wanted digest.
    pub async fn fetch(
        &self,
        request: &Request,
        listener: Listener<'_>,
    ) -> Result<Downloaded, DownloadError> {
        let lock = part::lock(request.destination.clone(), self.policy.lock_wait).await?;
        let fetched = self.fetch_locked(request, listener).await;
        part::unlock(request.destination.clone(), lock).await?;
        fetched
    }

    async fn fetch_locked(
        &self,
        request: &Request,
        listener: Listener<'_>,
    ) -> Result<Downloaded, DownloadError> {
        if !matches!(request.url.scheme(), "http" | "https" | "file") {
            return Err(DownloadError::scheme(&request.url));
        }
        if let Some(present) = present(request).await? {
            return Ok(present);
        }
        let fetched = self.fetch_part(request, listener).await;
        if let Err(error) = &fetched {
            // Too much of it is of no use, a part of something that failed later may be.
            let all = matches!(error, DownloadError::TooLarge { .. });
            part::clear(request.destination.clone(), all).await?;
        }
        fetched
    }

    async fn fetch_part(
        &self,
        request: &Request,
        listener: Listener<'_>,
    ) -> Result<Downloaded, DownloadError> {
        let mut part = Part::open(request.destination.clone()).await?;
        let mut tries = Tries::default();
        loop {
            let before = part.length();
            let outcome = if request.url.scheme() == "file" {
                self.copy(request, part, listener).await
            } else {
                self.attempt(request, part, listener).await
            };
            let interruption = match outcome {
                Attempt::Complete(complete) => {
                    let (complete, found) = complete.settle().await?;
                    let Some(fault) = Fault::of(request, &found) else {
                        complete.publish().await?;
                        return Ok(downloaded(&request.destination, &found));
                    };
                    if !complete.was_resumed() {
                        let kept = complete.keep_as_corrupt().await?;
                        return Err(fault.error(&request.url, &found, kept));
                    }
                    // What an earlier attempt left may be damaged: once more from the start.
                    part = complete.restart().await?;
                    Interruption::DamagedPart
                }
                Attempt::Interrupted(kept, interruption) => {
                    part = kept;
                    interruption
                }
                Attempt::Failed(error) => return Err(error),
            };
            let advanced = part.length() > before;
            self.pause(&request.url, &mut tries, advanced, interruption, listener)
                .await?;
        }
    }

    /// Reads something small into memory: at most `limit` bytes.
    pub async fn read(&self, url: &Url, limit: u64) -> Result<Vec<u8>, DownloadError> {
        let mut tries = Tries::default();
        loop {
            let outcome = match url.scheme() {
                "file" => return file::read(url, limit).await,
                "http" | "https" => http::read(&self.client, url, limit).await,
                _ => return Err(DownloadError::scheme(url)),
            };
            match outcome {
                Ok(bytes) => return Ok(bytes),
                Err(http::Stop::Fail(error)) => return Err(error),
                Err(http::Stop::Retry(interruption)) => {
                    self.pause(url, &mut tries, false, interruption, &|_| ())
                        .await?;
                }
            }
        }
    }

    /// Refuses what the disk cannot hold. The bytes of the part behind `start` are given back first.
    async fn check_space(
        &self,
        request: &Request,
        part: &Part,
        total: u64,
        start: u64,
    ) -> Result<(), DownloadError> {
        let (folder, path) = (part.folder().to_owned(), request.destination.clone());
        let (needed, kept) = (total.saturating_sub(start), self.policy.keep_free);
        let given_back = part.length().saturating_sub(start);
        part::blocking(move || {
            let available = FILES.free_space(&folder)?.available;
            if needed.saturating_add(kept) > available.saturating_add(given_back) {
                return Err(DownloadError::Space {
                    path,
                    needed,
                    available,
                    kept,
                });
            }
            Ok(())
        })
        .await
    }

    /// Waits before the next attempt, or says that there is none.
    async fn pause(
        &self,
        url: &Url,
        tries: &mut Tries,
        advanced: bool,
        interruption: Interruption,
        listener: Listener<'_>,
    ) -> Result<(), DownloadError> {
        tries.count(advanced);
        if tries.fruitless >= self.policy.attempts || tries.all >= self.policy.total_attempts {
            return Err(DownloadError::given_up(url, tries.all, interruption));
        }
        let after = pace::pause(&self.policy, tries.fruitless, interruption.asked_pause(), {
            self.pace.jitter()
        });
        tracing::debug!(url = %error::Shown(url), ?after, why = %interruption, "retrying a download");
        listener(Event::Retry {
            after,
            why: interruption.to_string(),
        });
        self.pace.sleep(after).await;
        Ok(())
    }
}

/// How often it was tried.
#[derive(Debug, Default)]
struct Tries {
    all: u32,
    /// In a row, without a byte gained.
    fruitless: u32,
}

impl Tries {
    fn count(&mut self, advanced: bool) {
        self.all += 1;
        self.fruitless = if advanced { 1 } else { self.fruitless + 1 };
    }
}

/// The file, if it is there already and surely the right one.
async fn present(request: &Request) -> Result<Option<Downloaded>, DownloadError> {
    let Some(wanted) = &request.digest else {
        return Ok(None);
    };
    let path = request.destination.clone();
    let found = part::blocking(move || match digest_file(&path) {
        Ok(digests) => Ok(Some(digests)),
        Err(DigestError::Missing { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    })
    .await?;
    Ok(found
        .filter(|found| {
            found.matches(wanted) && request.length.is_none_or(|length| length == found.length)
        })
        .map(|found| downloaded(&request.destination, &found)))
}

fn downloaded(path: &Utf8Path, digests: &Digests) -> Downloaded {
    Downloaded {
        path: path.to_owned(),
        sha256: digests.sha256.clone(),
        length: digests.length,
    }
}

/// What is wrong with a content that was transferred completely.
enum Fault {
    Length { expected: u64 },
    Digest { expected: Digest },
}

impl Fault {
    fn of(request: &Request, found: &Digests) -> Option<Self> {
        let length = request
            .length
            .filter(|expected| *expected != found.length)
            .map(|expected| Self::Length { expected });
        length.or_else(|| {
            let expected = request.digest.clone()?;
            (!found.matches(&expected)).then_some(Self::Digest { expected })
        })
    }

    fn error(self, url: &Url, found: &Digests, kept: Utf8PathBuf) -> DownloadError {
        match self {
            Self::Length { expected } => DownloadError::length(url, expected, found.length, kept),
            Self::Digest { expected } => DownloadError::digest(url, &expected, found, kept),
        }
    }
}

/// The machine that downloads go to.
const FILES: Native = Native;
