//! Writes a log. Losing a line is better than stopping a service, so writing never fails; what could
//! not be written is counted and said as soon as writing works again.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use camino::Utf8PathBuf;
use fs_err::{File, OpenOptions};
use jiff::Timestamp;

use super::{LogLine, Rotation, Stream, generations};

/// A shared handle to one log file. Clones write to the same file, one line at a time.
#[derive(Debug, Clone)]
pub struct LogWriter {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    path: Utf8PathBuf,
    rotation: Rotation,
    open: Option<(File, u64)>,
    lost: u64,
}

impl LogWriter {
    pub fn new(path: Utf8PathBuf, rotation: Rotation) -> Self {
        Self {
            inner: Arc::new(Mutex::new(Inner {
                path,
                rotation,
                open: None,
                lost: 0,
            })),
        }
    }

    pub fn write(&self, stream: Stream, pid: Option<u32>, text: &str) {
        self.write_bytes(stream, pid, text.as_bytes());
    }

    /// Writes one line; a line end at its end is dropped, others within become spaces, bytes that are
    /// not UTF-8 become the replacement character.
    pub fn write_bytes(&self, stream: Stream, pid: Option<u32>, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let text = text
            .trim_end_matches(['\n', '\r'])
            .replace(['\n', '\r', '\0'], " ");
        let line = LogLine {
            time: Timestamp::now(),
            stream,
            pid,
            text,
        };
        // A panic of another writer leaves at worst a half-written line behind.
        self.inner
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .write(&line);
    }
}

impl Inner {
    fn write(&mut self, line: &LogLine) {
        if self.lost > 0 {
            let text = format!("{} lines could not be written here", self.lost);
            let stream = Stream::Supervisor;
            let notice = LogLine {
                time: line.time,
                stream,
                pid: None,
                text,
            };
            if self.append(&format!("{notice}\n")).is_ok() {
                self.lost = 0;
            }
        }
        if self.append(&format!("{line}\n")).is_err() {
            self.lost += 1;
            self.open = None;
        }
    }

    fn append(&mut self, text: &str) -> std::io::Result<()> {
        let added = text.len() as u64;
        let full = self
            .open
            .as_ref()
            .is_some_and(|(_, length)| length + added > self.rotation.bytes);
        if full {
            self.open = None;
            self.rotate()?;
        }
        if self.open.is_none() {
            if let Some(folder) = self.path.parent() {
                fs_err::create_dir_all(folder)?;
            }
            let file = OpenOptions::new()
                .create(true)
                .append(true)
                .open(&self.path)?;
            let length = file.metadata()?.len();
            self.open = Some((file, length));
        }
        if let Some((file, length)) = &mut self.open {
            file.write_all(text.as_bytes())?;
            *length += added;
        }
        Ok(())
    }

    /// Shifts every file one further from the present; the oldest is overwritten.
    fn rotate(&self) -> std::io::Result<()> {
        let names: Vec<_> = generations(&self.path, self.rotation.keep).collect();
        for pair in names.windows(2).rev() {
            match fs_err::rename(&pair[0], &pair[1]) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        if self.rotation.keep == 0 {
            fs_err::remove_file(&self.path)?;
        }
        Ok(())
    }
}
