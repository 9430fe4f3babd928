//! How much memory this process holds. Invariant: pages that are in memory now, shared ones included; what was
//! only asked for does not count.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub use linux::resident;
#[cfg(windows)]
pub use windows::resident;

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
}
