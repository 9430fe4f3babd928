//! Whether the kernel took the score by which it chooses whom to end when memory is short. Read from
//! the process itself: rights, containers and kernels differ in what they let us set.

use super::super::{LimitKind, LimitReport};

/// Adds to `report` whether `asked` holds for the process `pid`.
pub(super) fn judge(pid: u32, asked: i16, report: &mut LimitReport) {
    let kind = LimitKind::OutOfMemoryScore;
    match fs_err::read_to_string(format!("/proc/{pid}/oom_score_adj")) {
        Ok(text) if text.trim() == asked.to_string() => report.enforced.push(kind),
        Ok(text) => {
            let reason = format!(
                "the kernel keeps the score {} instead of {asked}; lowering it needs CAP_SYS_RESOURCE",
                text.trim()
            );
            report.refuse(kind, reason);
        }
        Err(error) => report.refuse(kind, format!("the score cannot be read back: {error}")),
    }
}
