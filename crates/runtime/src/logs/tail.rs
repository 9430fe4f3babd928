//! Finds where the last lines of a log begin, reading backwards and no more than needed.

use std::io::SeekFrom;

use camino::Utf8PathBuf;
use fs_err::tokio::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

use super::{Entry, LONGEST_LINE, LogError, Tag, files};

const BLOCK: u64 = 64 << 10;

/// A place in a list of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) file: usize,
    pub(super) offset: u64,
}

/// Where the last `lines` lines begin in `paths`, oldest first. Lines are those of the program: a long one counts
/// once, however many entries it has.
pub(super) async fn start_of_tail(paths: &[Utf8PathBuf], lines: u64) -> Result<Position, LogError> {
    let mut count = Count {
        left: lines,
        seen_any: false,
    };
    for (index, path) in paths.iter().enumerate().rev() {
        let Some(mut file) = files::open(path).await? else {
            continue;
        };
        let offset = scan(&mut file, &mut count)
            .await
            .map_err(|source| LogError::Io {
                action: "read",
                path: path.clone(),
                source,
            })?;
        if let Some(offset) = offset {
            return Ok(Position {
                file: index,
                offset,
            });
        }
    }
    Ok(Position::default())
}

/// Counts full lines from the end of one file; `Some` once the line before the wanted ones was found.
async fn scan(file: &mut File, count: &mut Count) -> std::io::Result<Option<u64>> {
    let mut end = file.metadata().await?.len();
    // The begin of a line whose end was seen already.
    let mut carried: Vec<u8> = Vec::new();
    let mut line_end = end;
    while end > 0 {
        let begin = end.saturating_sub(BLOCK);
        file.seek(SeekFrom::Start(begin)).await?;
        let mut block = vec![0; usize::try_from(end - begin).unwrap_or(usize::MAX)];
        file.read_exact(&mut block).await?;
        let mut rest = block.len();
        while let Some(newline) = block[..rest].iter().rposition(|byte| *byte == b'\n') {
            let next_begin = begin + newline as u64 + 1;
            let mut line = block[newline + 1..rest].to_vec();
            line.append(&mut carried);
            if next_begin < line_end && count.is_before_tail(&line) {
                return Ok(Some(line_end));
            }
            line_end = next_begin;
            rest = newline;
        }
        let mut line = block[..rest].to_vec();
        line.append(&mut carried);
        // Only its first words are of interest.
        line.truncate(LONGEST_LINE);
        carried = line;
        end = begin;
    }
    let found = !carried.is_empty() && count.is_before_tail(&carried);
    Ok(found.then_some(line_end))
}

/// How many lines are still wanted, while entries are seen from the last to the first.
struct Count {
    left: u64,
    seen_any: bool,
}

impl Count {
    /// Whether an entry ends a line that is not wanted any more.
    fn is_before_tail(&mut self, line: &[u8]) -> bool {
        let Ok(entry) = Entry::parse(line) else {
            return false;
        };
        // The very last entry ends a line, even one that its program never ended.
        let ends_line = entry.tag == Tag::Full || !self.seen_any;
        self.seen_any = true;
        if ends_line && self.left == 0 {
            return true;
        }
        self.left -= u64::from(ends_line);
        false
    }
}
