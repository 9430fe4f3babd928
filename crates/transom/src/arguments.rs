//! Options that every command takes. Invariant: they are all optional here; what holds in the end,
//! and where it came from, is decided by `settings`.

use camino::Utf8PathBuf;

use crate::logging::{LogFilter, LogFormat};
use crate::output::{ColorMode, Format};

const HEADING: &str = "Global options";

/// The options before, or after, any command.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct GlobalOptions {
    /// Form of what is printed
    #[arg(short, long, global = true, value_name = "FORM", help_heading = HEADING)]
    pub output: Option<Format>,

    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", help_heading = HEADING, hide_short_help = true)]
    pub color: Option<ColorMode>,

    /// Print data and errors only
    #[arg(short, long, global = true, help_heading = HEADING)]
    pub quiet: bool,

    /// Say more: once for info, twice for debug, three times for trace
    #[arg(
        short,
        long,
        global = true,
        action = clap::ArgAction::Count,
        conflicts_with_all = ["quiet", "log_level"],
        help_heading = HEADING
    )]
    pub verbose: u8,

    /// Which log events to write to stderr: off, error, warn, info, debug, trace, or a filter such
    /// as `warn,transom_host=debug`
    #[arg(long, global = true, value_name = "LEVEL", help_heading = HEADING, hide_short_help = true)]
    pub log_level: Option<LogFilter>,

    /// Form of log events
    #[arg(long, global = true, value_name = "FORM", help_heading = HEADING, hide_short_help = true)]
    pub log_format: Option<LogFormat>,

    /// Do not show how far long operations are
    #[arg(long, global = true, help_heading = HEADING, hide_short_help = true)]
    pub no_progress: bool,

    /// The configuration file, instead of the one at `transom config path`
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING, hide_short_help = true)]
    pub config: Option<Utf8PathBuf>,

    /// The folder that stands for `/` or `C:\`, for tests and image builds
    #[arg(long, global = true, value_name = "DIR", help_heading = HEADING, hide_short_help = true)]
    pub root: Option<Utf8PathBuf>,
}
