//! Writing and reading together, since each is the other's only user.

use camino::Utf8PathBuf;

use super::{LogLine, LogReader, LogWriter, Query, Rotation, Stream, log_path};
use crate::unit::UnitName;

fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(folder.path().join("unit.log")).unwrap();
    (folder, path)
}

fn texts(lines: &[LogLine]) -> Vec<&str> {
    lines.iter().map(|line| line.text.as_str()).collect()
}

#[test]
fn what_was_written_is_read_back_with_stream_and_pid() {
    let (_folder, path) = folder();
    let writer = LogWriter::new(path.clone(), Rotation::default());
    writer.write_bytes(Stream::Output, Some(7), b"hello\r\n");
    writer.write_bytes(Stream::Error, Some(7), b"bad \xff byte");
    writer.write(Stream::Supervisor, None, "Started it.");
    let lines = LogReader::new(path).read(Query::default()).unwrap();
    assert_eq!(texts(&lines), ["hello", "bad \u{fffd} byte", "Started it."]);
    assert_eq!(lines[1].stream, Stream::Error);
    assert_eq!((lines[0].pid, lines[2].pid), (Some(7), None));
}

#[test]
fn the_log_never_takes_more_than_its_share_and_keeps_the_newest() {
    let (folder, path) = folder();
    let rotation = Rotation {
        bytes: 1000,
        keep: 2,
    };
    let writer = LogWriter::new(path.clone(), rotation);
    for number in 0..200 {
        writer.write(Stream::Output, Some(1), &format!("line {number}"));
    }
    let total: u64 = fs_err::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert!(total <= 3000, "{total} bytes");
    let lines = LogReader::new(path)
        .read(Query {
            last: Some(2),
            ..Query::default()
        })
        .unwrap();
    assert_eq!(texts(&lines), ["line 198", "line 199"]);
}

#[test]
fn a_follower_misses_nothing_and_sees_nothing_twice_across_rotation() {
    let (_folder, path) = folder();
    let writer = LogWriter::new(
        path.clone(),
        Rotation {
            bytes: 300,
            keep: 3,
        },
    );
    let mut reader = LogReader::new(path);
    let mut seen = Vec::new();
    for number in 0..60 {
        writer.write(Stream::Output, Some(1), &number.to_string());
        seen.extend(reader.more().unwrap());
    }
    let expected: Vec<String> = (0..60).map(|number| number.to_string()).collect();
    assert_eq!(texts(&seen), expected);
}

#[test]
fn a_log_that_is_not_there_yet_is_empty_and_then_followed() {
    let (_folder, path) = folder();
    let mut reader = LogReader::new(path.clone());
    assert!(reader.read(Query::default()).unwrap().is_empty());
    LogWriter::new(path, Rotation::default()).write(Stream::Output, None, "now");
    assert_eq!(texts(&reader.more().unwrap()), ["now"]);
}

#[test]
fn a_line_cut_short_by_a_crash_does_not_hide_the_next() {
    let (_folder, path) = folder();
    let writer = LogWriter::new(path.clone(), Rotation::default());
    writer.write(Stream::Output, Some(1), "whole");
    let mut bytes = fs_err::read(&path).unwrap();
    bytes.extend(b"2026-01-01T00:00:0\n");
    fs_err::write(&path, bytes).unwrap();
    writer.write(Stream::Output, Some(1), "next");
    let lines = LogReader::new(path).read(Query::default()).unwrap();
    assert_eq!(texts(&lines), ["whole", "next"]);
}

#[test]
fn since_and_until_choose_by_time() {
    let (_folder, path) = folder();
    let line = |second: u8| format!("2026-01-01T00:00:{second:02}.000000Z o 1 {second}\n");
    fs_err::write(&path, (0..10).map(line).collect::<String>()).unwrap();
    let query = Query {
        since: Some("2026-01-01T00:00:03Z".parse().unwrap()),
        until: Some("2026-01-01T00:00:05Z".parse().unwrap()),
        last: None,
    };
    assert_eq!(
        texts(&LogReader::new(path).read(query).unwrap()),
        ["3", "4", "5"]
    );
}

#[test]
fn when_the_disk_refuses_the_lost_lines_are_counted_and_said_later() {
    let (folder, _) = folder();
    let blocked = Utf8PathBuf::from_path_buf(folder.path().join("in-the-way/unit.log")).unwrap();
    fs_err::write(
        folder.path().join("in-the-way"),
        "a file where a folder should be",
    )
    .unwrap();
    let writer = LogWriter::new(blocked.clone(), Rotation::default());
    writer.write(Stream::Output, Some(1), "lost");
    writer.write(Stream::Output, Some(1), "lost too");
    fs_err::remove_file(folder.path().join("in-the-way")).unwrap();
    writer.write(Stream::Output, Some(1), "back");
    let lines = LogReader::new(blocked).read(Query::default()).unwrap();
    assert_eq!(texts(&lines), ["2 lines could not be written here", "back"]);
}

#[test]
fn every_unit_name_gives_a_file_name_that_windows_accepts() {
    let unit: UnitName = r"dev-disk\x2dby.service".parse().unwrap();
    assert_eq!(
        log_path("logs".into(), &unit).file_name(),
        Some(r"dev-disk%5Cx2dby.service.log")
    );
}
