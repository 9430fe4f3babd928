//! Shows how far a simulation is.

use std::sync::{Mutex, PoisonError};

use transom_simulation::{Audience, Phase};

use crate::progress::{Progress, Task};

pub(super) struct Shown {
    progress: Progress,
    /// The phase that goes on, and how far it was told to be.
    current: Mutex<Option<(Task, u64)>>,
}

impl Shown {
    pub(super) fn new(progress: Progress) -> Self {
        Self {
            progress,
            current: Mutex::default(),
        }
    }
}

impl Audience for Shown {
    fn begin(&self, phase: &'static str, wanted: usize) {
        let total = u64::try_from(wanted).unwrap_or(u64::MAX);
        let task = self.progress.start_counted(phase, total);
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some((task, 0));
    }

    fn reached(&self, count: usize) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((task, told)) = current.as_mut() {
            let count = u64::try_from(count).unwrap_or(u64::MAX);
            // What goes back is not shown: it comes again.
            if count > *told {
                task.advance(count - *told);
                *told = count;
            }
        }
    }

    fn end(&self, _phase: &Phase) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
