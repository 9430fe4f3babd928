//! `logs`: what units printed, and what the supervisor did with them.

use std::time::Duration;

use anyhow::Context as _;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use transom_supervisor::daemon::log_folder;
use transom_supervisor::logs::{LogLine, LogReader, Query, Stream, log_path};
use transom_supervisor::unit::UnitName;
use transom_supervisor::unit::values::parse_time_span;

use super::systemd;
use crate::context::Context;
use crate::failure::{Advice as _, Exit};
use crate::output::Format;

/// How often a followed log is looked at again.
const FOLLOW: Duration = Duration::from_millis(200);

/// Show what units printed, and what was done with them
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom service logs web\n  transom service logs -f web worker\n  transom service logs --since 10min web\n  transom service logs --since '2026-11-01 08:00' --until 2026-11-02 -o json web"
)]
pub(super) struct Logs {
    #[arg(required = true, value_name = "UNIT")]
    units: Vec<String>,

    /// Go on with what comes, until interrupted
    #[arg(short, long)]
    follow: bool,

    /// Only the last lines
    #[arg(short = 'n', long, value_name = "COUNT")]
    lines: Option<usize>,

    /// Not older: a time span such as 10min, or a date with or without a time
    #[arg(short = 'S', long, value_name = "TIME")]
    since: Option<String>,

    /// Not newer, in the same forms
    #[arg(short = 'U', long, value_name = "TIME")]
    until: Option<String>,
}

impl Logs {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        if systemd::runs(cx) {
            return systemd::journalctl(&self.journalctl());
        }
        let now = cx.out.shown().now;
        let query = Query {
            since: self
                .since
                .as_deref()
                .map(|text| moment(text, now))
                .transpose()?,
            until: self
                .until
                .as_deref()
                .map(|text| moment(text, now))
                .transpose()?,
            last: self.lines,
        };
        let folder = log_folder(&cx.layout);
        let mut readers = Vec::new();
        let mut lines = Vec::new();
        for word in &self.units {
            let name = UnitName::from_command_line(word).exit(Exit::Usage)?;
            let path = log_path(&folder, &name);
            let mut reader = LogReader::new(path.clone());
            let read = reader
                .read(query)
                .with_context(|| format!("could not read `{path}`"))?;
            if read.is_empty() && !self.follow && fs_err::metadata(&path).is_err() {
                cx.out.remark(&format!("{name} has no log yet"));
            }
            lines.extend(read.into_iter().map(|line| (name.to_string(), line)));
            readers.push((name.to_string(), reader));
        }
        lines.sort_by_key(|(_, line)| line.time);
        if let Some(last) = self.lines {
            lines.drain(..lines.len().saturating_sub(last));
        }
        print(cx, &lines)?;
        if !self.follow {
            return Ok(Exit::Success);
        }
        loop {
            std::thread::sleep(FOLLOW);
            let mut fresh = Vec::new();
            for (name, reader) in &mut readers {
                let more = reader
                    .more()
                    .with_context(|| format!("could not follow {name}"))?;
                fresh.extend(more.into_iter().map(|line| (name.clone(), line)));
            }
            fresh.sort_by_key(|(_, line)| line.time);
            print(cx, &fresh)?;
        }
    }

    fn journalctl(&self) -> Vec<String> {
        let mut flags = vec!["--no-pager".to_owned()];
        flags.extend(self.units.iter().map(|unit| format!("--unit={unit}")));
        flags.extend(self.follow.then(|| "--follow".to_owned()));
        flags.extend(self.lines.map(|lines| format!("--lines={lines}")));
        let back = |text: &String| match parse_time_span(text) {
            Ok(Some(_)) => format!("-{text}"),
            _ => text.clone(),
        };
        flags.extend(
            self.since
                .as_ref()
                .map(|since| format!("--since={}", back(since))),
        );
        flags.extend(
            self.until
                .as_ref()
                .map(|until| format!("--until={}", back(until))),
        );
        flags
    }
}

/// Prints lines as they come: a listing for people, one document per line for programs.
fn print(cx: &Context, lines: &[(String, LogLine)]) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct Printed<'a> {
        unit: &'a str,
        #[serde(flatten)]
        line: &'a LogLine,
    }
    for (unit, line) in lines {
        let text = match cx.out.format() {
            Format::Json => serde_json::to_string(&Printed { unit, line })?,
            Format::Yaml => {
                format!(
                    "---\n{}",
                    serde_saphyr::to_string(&Printed { unit, line })?.trim_end()
                )
            }
            _ => render(unit, line),
        };
        cx.out.write(&format!("{text}\n"))?;
    }
    Ok(())
}

/// A line as journalctl would print it.
pub(super) fn render(unit: &str, line: &LogLine) -> String {
    let time = line
        .time
        .to_zoned(TimeZone::system())
        .strftime("%b %d %H:%M:%S")
        .to_string();
    let name = unit.strip_suffix(".service").unwrap_or(unit);
    match (line.stream, line.pid) {
        (Stream::Supervisor, _) => format!("{time} transom: {}", line.text),
        (_, Some(pid)) => format!("{time} {name}[{pid}]: {}", line.text),
        (_, None) => format!("{time} {name}: {}", line.text),
    }
}

/// A time that a person wrote: a span back from now, or a date.
fn moment(text: &str, now: Timestamp) -> anyhow::Result<Timestamp> {
    let text = text.trim();
    if let Ok(Some(span)) = parse_time_span(text.strip_prefix('-').unwrap_or(text)) {
        return Ok(now.checked_sub(SignedDuration::try_from(span)?)?);
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    let zone = TimeZone::system();
    let today = now.to_zoned(zone.clone()).date();
    let date = match text {
        "now" => return Ok(now),
        "today" => today.to_datetime(jiff::civil::Time::midnight()),
        "yesterday" => today
            .yesterday()?
            .to_datetime(jiff::civil::Time::midnight()),
        _ => text
            .parse::<jiff::civil::DateTime>()
            .or_else(|_| {
                text.parse::<jiff::civil::Date>()
                    .map(|d| d.to_datetime(jiff::civil::Time::midnight()))
            })
            .or_else(|_| {
                text.parse::<jiff::civil::Time>()
                    .map(|time| today.to_datetime(time))
            })
            .with_context(|| format!("`{text}` is not a time"))
            .exit(Exit::Usage)
            .hint("write for example 10min, 08:30, 2026-11-01 or '2026-11-01 08:30'")?,
    };
    Ok(date.to_zoned(zone)?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let now: Timestamp = "2026-11-16T12:00:00Z".parse().unwrap();
        for (text, seconds) in [("10min", 600), ("-1h", 3600), ("90", 90), ("now", 0)] {
            let since = moment(text, now).unwrap();
            assert_eq!(now.duration_since(since).as_secs(), seconds, "{text}");
        }
        assert_eq!(
            moment("2026-11-16T11:00:00Z", now).unwrap().to_string(),
            "2026-11-16T11:00:00Z"
        );
        assert!(moment("2026-11-01 08:30", now).unwrap() < now);
        assert!(moment("yesterday", now).unwrap() < moment("today", now).unwrap());
        assert!(moment("soon", now).is_err());
    }
}
