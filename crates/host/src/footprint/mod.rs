//! How much memory this process holds. Invariant: pages that are in memory now, shared ones included; what was
//! only asked for does not count.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub use linux::{give_back, resident};
#[cfg(windows)]
pub use windows::{give_back, resident};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_used_counts() {
        let before = resident().unwrap();
        let used = vec![1_u8; 64 << 20];
        let after = resident().unwrap();
        assert!(
            after > before + (32 << 20),
            "{before} and then {after} with {} more",
            used.len()
        );
    }

    #[test]
    fn what_is_given_back_is_there_again_when_it_is_needed() {
        let used = vec![7_u8; 1 << 20];
        give_back().unwrap();
        assert!(used.iter().all(|byte| *byte == 7));
        assert!(resident().unwrap() > 0);
    }
}
