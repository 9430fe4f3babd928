//! The end of a log: what a writer that copies from elsewhere and was interrupted must not write again.

use std::collections::HashMap;
use std::io::SeekFrom;

use camino::Utf8Path;
use jiff::{SignedDuration, Timestamp};
use tokio::io::{AsyncReadExt, AsyncSeekExt};

use super::{Entry, LogError, Stream, files};

/// How much of a file is looked at.
const WINDOW: u64 = 256 << 10;
/// Entries of two streams may be out of order by this.
const DISORDER: SignedDuration = SignedDuration::from_secs(1);

/// The latest entries of a log.
#[derive(Debug, Default)]
pub struct Recent {
    since: Option<Timestamp>,
    written: HashMap<(Timestamp, Stream), usize>,
}

impl Recent {
    /// Reads the end of the log at `path`; after a rotation, that of the file before.
    pub async fn read(path: &Utf8Path) -> Result<Self, LogError> {
        let mut paths = vec![path.to_owned()];
        paths.extend(files::rotated(path).await?.pop().map(|last| last.path));
        for path in paths {
            let Some(mut file) = files::open(&path).await? else {
                continue;
            };
            let failed = |source| LogError::Io {
                action: "read the end of",
                path: path.clone(),
                source,
            };
            let length = file.metadata().await.map_err(failed)?.len();
            let begin = length.saturating_sub(WINDOW);
            file.seek(SeekFrom::Start(begin)).await.map_err(failed)?;
            let mut bytes = Vec::new();
            let mut window = file.take(WINDOW);
            window.read_to_end(&mut bytes).await.map_err(failed)?;
            let recent = Self::of(&bytes, begin > 0);
            if recent.since.is_some() {
                return Ok(recent);
            }
        }
        Ok(Self::default())
    }

    /// `is_cut`: there is more before these bytes.
    fn of(bytes: &[u8], is_cut: bool) -> Self {
        let lines = bytes.split(|byte| *byte == b'\n').skip(usize::from(is_cut));
        let entries: Vec<_> = lines.filter_map(|line| Entry::parse(line).ok()).collect();
        let times = || entries.iter().map(|entry| entry.time);
        let (Some(earliest), Some(latest)) = (times().min(), times().max()) else {
            return Self::default();
        };
        // Others of the earliest time may be in what was not looked at.
        let whole = if is_cut {
            earliest + SignedDuration::from_nanos(1)
        } else {
            earliest
        };
        let since = (latest - DISORDER).max(whole).min(latest);
        let mut written = HashMap::new();
        for entry in entries.iter().filter(|entry| entry.time >= since) {
            *written.entry((entry.time, entry.stream)).or_default() += 1;
        }
        Self {
            since: Some(since),
            written,
        }
    }

    /// From when on entries are wanted; `None` for all.
    pub fn since(&self) -> Option<Timestamp> {
        self.since
    }

    /// Whether an entry is in the log already. Each that is there is told once.
    pub fn take(&mut self, time: Timestamp, stream: Stream) -> bool {
        if self.since.is_some_and(|since| time < since) {
            return true;
        }
        match self.written.get_mut(&(time, stream)) {
            Some(count) if *count > 0 => {
                *count -= 1;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Timestamp {
        format!("2026-01-01T00:00:{text}Z").parse().unwrap()
    }

    fn lines(entries: &[(&str, &str)]) -> Vec<u8> {
        let line =
            |(time, stream): &(&str, &str)| format!("2026-01-01T00:00:{time}Z {stream} F x\n");
        entries.iter().map(line).collect::<String>().into_bytes()
    }

    #[test]
    fn what_is_there_is_taken_once_and_what_is_not_is_not() {
        let bytes = lines(&[
            ("01", "stdout"),
            ("05.2", "stderr"),
            ("05.1", "stdout"),
            ("05.2", "stderr"),
        ]);
        let mut recent = Recent::of(&bytes, false);
        assert_eq!(recent.since(), Some(time("04.2")));
        assert!(recent.take(time("01"), Stream::Stdout));
        assert!(recent.take(time("05.1"), Stream::Stdout));
        // Told later than one that it is older than.
        assert!(!recent.take(time("05.15"), Stream::Stdout));
        assert!(recent.take(time("05.2"), Stream::Stderr));
        assert!(recent.take(time("05.2"), Stream::Stderr));
        assert!(!recent.take(time("05.2"), Stream::Stderr));
        assert!(!recent.take(time("05.2"), Stream::Stdout));
    }

    #[test]
    fn nothing_is_asked_for_again_that_may_be_in_an_earlier_file() {
        let bytes = lines(&[("05", "stdout"), ("05", "stdout"), ("05.5", "stdout")]);
        assert_eq!(Recent::of(&bytes, false).since(), Some(time("05")));
        assert_eq!(Recent::of(&bytes, true).since(), Some(time("05.000000001")));
        let mut none = Recent::of(b"nonsense", false);
        assert_eq!(none.since(), None);
        assert!(!none.take(time("05"), Stream::Stdout));
    }

    #[tokio::test]
    async fn a_log_that_was_just_rotated_goes_on_after_the_file_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("0.log");
        assert_eq!(Recent::read(&path).await.unwrap().since(), None);
        fs_err::write(
            format!("{path}.20260101-000010.000"),
            lines(&[("09", "stdout")]),
        )
        .unwrap();
        fs_err::write(&path, "").unwrap();
        let recent = Recent::read(&path).await.unwrap();
        assert_eq!(recent.since(), Some(time("09")));
    }
}
