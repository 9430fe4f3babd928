//! Logs as programs, agents and people misuse them: torn lines, rotation under a reader, lines without an end.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::RuntimeError;

struct Folder {
    _guard: tempfile::TempDir,
    log: Utf8PathBuf,
}

fn folder() -> Folder {
    let guard = tempfile::tempdir().unwrap();
    let log = Utf8Path::from_path(guard.path()).unwrap().join("0.log");
    Folder { _guard: guard, log }
}

fn epoch() -> Timestamp {
    Timestamp::from_second(1_700_000_000).unwrap()
}

/// Each reading is a second later than the one before.
fn ticking() -> Timestamp {
    static SECONDS: AtomicI64 = AtomicI64::new(1_700_000_000);
    Timestamp::from_second(SECONDS.fetch_add(1, Ordering::Relaxed)).unwrap()
}

fn writer(log: &Utf8Path) -> LogWriter {
    LogWriter::open(log, epoch).unwrap()
}

async fn read(log: &Utf8Path, options: ReadOptions) -> String {
    let reader = LogReader::open(log, options, CancellationToken::new()).await;
    text_of(reader.unwrap()).await
}

async fn text_of(mut reader: LogReader) -> String {
    let mut text = Vec::new();
    while let Some(bytes) = reader.next().await.unwrap() {
        text.extend_from_slice(&bytes);
    }
    String::from_utf8(text).unwrap()
}

fn pieces(chunks: &[&[u8]]) -> Vec<(Tag, Vec<u8>)> {
    let mut splitter = Splitter::default();
    let mut pieces = Vec::new();
    for chunk in chunks {
        splitter.feed(chunk, |tag, text| pieces.push((tag, text.to_vec())));
    }
    splitter.finish(|tag, text| pieces.push((tag, text.to_vec())));
    pieces
}

#[test]
fn lines_are_cut_at_their_ends_however_they_arrive() {
    let expected = [
        (Tag::Full, b"one".to_vec()),
        (Tag::Full, Vec::new()),
        (Tag::Full, b"t\0wo\r".to_vec()),
        (Tag::Partial, b"rest".to_vec()),
    ];
    assert_eq!(pieces(&[b"one\n\nt\0wo\r\nrest"]), expected);
    let bytes = b"one\n\nt\0wo\r\nrest";
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(pieces(&single), expected);
}

#[test]
fn a_line_of_exactly_one_piece_is_one_full_entry_and_a_longer_one_is_two() {
    let mut exact = vec![b'x'; LONGEST_PIECE];
    exact.push(b'\n');
    assert_eq!(pieces(&[&exact]), [(Tag::Full, vec![b'x'; LONGEST_PIECE])]);
    let (front, back) = exact.split_at(LONGEST_PIECE);
    assert_eq!(pieces(&[front, back]).len(), 1);
    let mut longer = vec![b'x'; LONGEST_PIECE + 1];
    longer.push(b'\n');
    let expected = [
        (Tag::Partial, vec![b'x'; LONGEST_PIECE]),
        (Tag::Full, b"x".to_vec()),
    ];
    assert_eq!(pieces(&[&longer]), expected);
    let halves: Vec<&[u8]> = longer.chunks(1000).collect();
    assert_eq!(pieces(&halves), expected);
}

#[test]
fn an_entry_reads_as_it_was_written() {
    let mut line = Vec::new();
    render_entry(&mut line, epoch(), Stream::Stderr, Tag::Partial, b"a b ");
    assert_eq!(line, b"2023-11-14T22:13:20.000000000Z stderr P a b \n");
    let entry = Entry::parse(&line[..line.len() - 1]).unwrap();
    assert_eq!((entry.time, entry.stream), (epoch(), Stream::Stderr));
    assert_eq!((entry.tag, entry.text), (Tag::Partial, &b"a b "[..]));
    let others = Entry::parse(b"2023-11-14T23:13:20.5+01:00 stdout F:x:y t").unwrap();
    assert_eq!(others.tag, Tag::Full);
    assert_eq!(others.time.as_second(), epoch().as_second());
}

#[test]
fn what_is_no_entry_is_refused() {
    for line in [
        &b""[..],
        b"hello",
        b"2023-11-14T22:13:20Z",
        b"2023-11-14T22:13:20Z stdout",
        b"2023-11-14T22:13:20Z stdin F x",
        b"2023-11-14T22:13:20Z stdout X x",
        b"yesterday stdout F x",
        b"\xff\xfe stdout F x",
    ] {
        assert!(Entry::parse(line).is_err(), "{line:?}");
    }
}

#[tokio::test]
async fn a_log_reads_as_the_program_wrote_it() {
    let place = folder();
    let log = writer(&place.log);
    log.write(Stream::Stdout, b"one\ntwo").unwrap();
    log.write(Stream::Stderr, b"bad\n").unwrap();
    log.write(Stream::Stdout, b" more\nend").unwrap();
    log.finish(Stream::Stdout).unwrap();
    let all = read(&place.log, ReadOptions::default()).await;
    assert_eq!(all, "one\nbad\ntwo more\nend");
    let errors = ReadOptions {
        stream: Some(Stream::Stderr),
        ..ReadOptions::default()
    };
    assert_eq!(read(&place.log, errors).await, "bad\n");
}

#[tokio::test]
async fn a_huge_line_comes_back_whole_and_has_one_time() {
    let place = folder();
    let log = writer(&place.log);
    let huge = "y".repeat(LONGEST_PIECE * 70 + 5);
    log.write(Stream::Stdout, format!("{huge}\n").as_bytes())
        .unwrap();
    let options = ReadOptions {
        timestamps: true,
        tail: Some(1),
        ..ReadOptions::default()
    };
    let text = read(&place.log, options).await;
    assert_eq!(text, format!("2023-11-14T22:13:20.000000000Z {huge}\n"));
}

#[tokio::test]
async fn a_line_that_was_torn_by_a_crash_spoils_no_other() {
    let place = folder();
    writer(&place.log)
        .write(Stream::Stdout, b"before\n")
        .unwrap();
    let mut bytes = fs_err::read(&place.log).unwrap();
    bytes.extend_from_slice(b"2023-11-14T22:1");
    fs_err::write(&place.log, bytes).unwrap();
    writer(&place.log)
        .write(Stream::Stdout, b"after\n")
        .unwrap();
    let text = read(&place.log, ReadOptions::default()).await;
    assert_eq!(text, "before\nafter\n");
}

#[tokio::test]
async fn a_line_without_an_end_that_is_longer_than_any_entry_is_skipped() {
    let place = folder();
    let mut bytes = vec![b'z'; LONGEST_LINE * 3];
    bytes.push(b'\n');
    render_entry(&mut bytes, epoch(), Stream::Stdout, Tag::Full, b"fine");
    fs_err::write(&place.log, bytes).unwrap();
    assert_eq!(read(&place.log, ReadOptions::default()).await, "fine\n");
    let tail = ReadOptions {
        tail: Some(5),
        ..ReadOptions::default()
    };
    assert_eq!(read(&place.log, tail).await, "fine\n");
}

#[tokio::test]
async fn the_last_lines_are_found_across_rotated_files() {
    let place = folder();
    let log = writer(&place.log);
    let always = Rotation {
        largest_file: 1,
        most_files: 10,
    };
    for number in 0..6 {
        let line = format!("line {number}\n");
        log.write(Stream::Stdout, line.as_bytes()).unwrap();
        if number % 2 == 1 {
            let rotated = rotate(&place.log, always, epoch(), async || {
                log.reopen()
                    .map_err(|error| RuntimeError::io("reopen", error))
            });
            assert!(rotated.await.unwrap());
        }
    }
    let tail = |lines| ReadOptions {
        tail: Some(lines),
        ..ReadOptions::default()
    };
    assert_eq!(read(&place.log, tail(0)).await, "");
    assert_eq!(read(&place.log, tail(1)).await, "line 5\n");
    let three = "line 3\nline 4\nline 5\n";
    assert_eq!(read(&place.log, tail(3)).await, three);
    let all = read(&place.log, ReadOptions::default()).await;
    assert_eq!(all.lines().count(), 6);
    assert_eq!(read(&place.log, tail(100)).await, all);
}

#[tokio::test]
async fn the_last_line_counts_even_if_it_was_not_ended() {
    let place = folder();
    let log = writer(&place.log);
    log.write(Stream::Stdout, b"one\ntwo\nrest").unwrap();
    log.finish(Stream::Stdout).unwrap();
    let tail = ReadOptions {
        tail: Some(2),
        ..ReadOptions::default()
    };
    assert_eq!(read(&place.log, tail).await, "two\nrest");
}

#[tokio::test]
async fn only_what_is_young_enough_and_short_enough_is_shown() {
    let place = folder();
    let log = LogWriter::open(&place.log, ticking).unwrap();
    for line in [&b"a\n"[..], b"b\n", b"c\n"] {
        log.write(Stream::Stdout, line).unwrap();
    }
    let text = fs_err::read_to_string(&place.log).unwrap();
    let second = text.lines().nth(1).unwrap();
    let since = Entry::parse(second.as_bytes()).unwrap().time;
    let options = ReadOptions {
        since: Some(since),
        ..ReadOptions::default()
    };
    assert_eq!(read(&place.log, options.clone()).await, "b\nc\n");
    let options = ReadOptions {
        limit_bytes: Some(3),
        ..options
    };
    assert_eq!(read(&place.log, options).await, "b\nc");
}

#[tokio::test]
async fn a_log_that_is_not_there_is_an_error_unless_it_is_waited_for() {
    let place = folder();
    let missing = LogReader::open(&place.log, ReadOptions::default(), CancellationToken::new());
    assert!(matches!(missing.await, Err(LogError::Missing { .. })));
    let finished = CancellationToken::new();
    let follow = ReadOptions {
        follow: true,
        ..ReadOptions::default()
    };
    let reader = LogReader::open(&place.log, follow, finished.clone()).await;
    let reading = tokio::spawn(text_of(reader.unwrap()));
    let log = writer(&place.log);
    log.write(Stream::Stdout, b"late\n").unwrap();
    finished.cancel();
    assert_eq!(reading.await.unwrap(), "late\n");
}

#[tokio::test]
async fn a_follower_misses_nothing_while_the_log_is_rotated_under_it() {
    let place = folder();
    let log = writer(&place.log);
    let finished = CancellationToken::new();
    let follow = ReadOptions {
        follow: true,
        ..ReadOptions::default()
    };
    let reader = LogReader::open(&place.log, follow, finished.clone()).await;
    let reading = tokio::spawn(text_of(reader.unwrap()));
    let rotation = Rotation {
        largest_file: 400,
        most_files: 100,
    };
    let mut expected = String::new();
    for number in 0..300 {
        let line = format!("line {number}\n");
        expected.push_str(&line);
        log.write(Stream::Stdout, line.as_bytes()).unwrap();
        let before_reopen = format!("between {number}\n");
        let wrote = std::cell::Cell::new(false);
        let rotated = rotate(&place.log, rotation, epoch(), async || {
            // The writer does not know yet that its file has another name.
            log.write(Stream::Stdout, before_reopen.as_bytes()).unwrap();
            wrote.set(true);
            tokio::time::sleep(Duration::from_millis(1)).await;
            log.reopen()
                .map_err(|error| RuntimeError::io("reopen", error))
        });
        assert_eq!(rotated.await.unwrap(), wrote.get());
        if wrote.get() {
            expected.push_str(&before_reopen);
        }
    }
    assert!(expected.contains("between"));
    finished.cancel();
    assert_eq!(reading.await.unwrap(), expected);
}

#[tokio::test]
async fn only_so_many_files_are_kept_and_strangers_are_left_alone() {
    let place = folder();
    let stranger = format!("{}.notes", place.log);
    fs_err::write(&stranger, "mine").unwrap();
    let log = writer(&place.log);
    let rotation = Rotation {
        largest_file: 10,
        most_files: 3,
    };
    for _ in 0..7 {
        log.write(Stream::Stdout, b"x\n").unwrap();
        let rotated = rotate(&place.log, rotation, epoch(), async || {
            log.reopen()
                .map_err(|error| RuntimeError::io("reopen", error))
        });
        assert!(rotated.await.unwrap());
    }
    assert_eq!(files::rotated(&place.log).await.unwrap().len(), 2);
    assert_eq!(fs_err::read_to_string(&stranger).unwrap(), "mine");
    assert_eq!(read(&place.log, ReadOptions::default()).await, "x\nx\n");
}

#[tokio::test]
async fn a_rotation_that_was_cut_short_is_ended_by_the_next() {
    let place = folder();
    let log = writer(&place.log);
    log.write(Stream::Stdout, b"old\n").unwrap();
    let rotation = Rotation {
        largest_file: 1,
        most_files: 3,
    };
    let failed = rotate(&place.log, rotation, epoch(), async || {
        Err(RuntimeError::Other("the agent died".into()))
    });
    assert!(matches!(failed.await, Err(LogError::Reopen { .. })));
    let ended = rotate(&place.log, rotation, epoch(), async || {
        log.reopen()
            .map_err(|error| RuntimeError::io("reopen", error))
    });
    assert!(ended.await.unwrap());
    log.write(Stream::Stdout, b"new\n").unwrap();
    let text = read(&place.log, ReadOptions::default()).await;
    assert_eq!(text, "old\nnew\n");
}
