//! What a `.timer` file says.

use std::time::Duration;

use super::calendar::CalendarEvent;
use super::name::UnitName;

/// Everything of `[Timer]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timer {
    pub on_active: Vec<Duration>,
    pub on_boot: Vec<Duration>,
    pub on_startup: Vec<Duration>,
    pub on_unit_active: Vec<Duration>,
    pub on_unit_inactive: Vec<Duration>,
    pub on_calendar: Vec<CalendarEvent>,
    pub randomized_delay: Duration,
    pub fixed_random_delay: bool,
    pub persistent: bool,
    pub remain_after_elapse: bool,
    /// What it starts: by default the service of the same name.
    pub unit: Option<UnitName>,
}

impl Default for Timer {
    fn default() -> Self {
        Self {
            on_active: Vec::new(),
            on_boot: Vec::new(),
            on_startup: Vec::new(),
            on_unit_active: Vec::new(),
            on_unit_inactive: Vec::new(),
            on_calendar: Vec::new(),
            randomized_delay: Duration::ZERO,
            fixed_random_delay: false,
            persistent: false,
            remain_after_elapse: true,
            unit: None,
        }
    }
}

impl Timer {
    /// Whether anything ever makes it fire.
    pub fn has_trigger(&self) -> bool {
        let spans = [
            &self.on_active,
            &self.on_boot,
            &self.on_startup,
            &self.on_unit_active,
            &self.on_unit_inactive,
        ];
        spans.iter().any(|list| !list.is_empty()) || !self.on_calendar.is_empty()
    }
}
