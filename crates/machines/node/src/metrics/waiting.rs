//! How long a guest's processor has waited, as the host's scheduler counts it where its statistics are switched on.

/// Seconds, out of what the kernel says of a thread in milliseconds (`/proc/PID/task/TID/sched`). Versions of the kernel name the field differently.
pub(super) fn seconds(sched: &str) -> Option<f64> {
    let value = sched.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim().rsplit('.').next() == Some("wait_sum")).then_some(value)
    })?;
    let milliseconds: f64 = value.trim().parse().ok()?;
    Some(milliseconds / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_name_it_differently() {
        for (said, expected) in [
            (
                "qemu (1, #threads: 3)\n---\nse.exec_start : 1.0\nwait_sum                 :      1500.250000\n",
                Some(1.50025),
            ),
            (
                "se.statistics.iowait_sum : 7.0\nse.statistics.wait_sum : 20.0\n",
                Some(0.02),
            ),
            ("se.wait_sum : 5.0", Some(0.005)),
            ("iowait_sum : 7.0\nnr_switches : 3\n", None),
            ("wait_sum : many", None),
            ("", None),
        ] {
            assert_eq!(seconds(said), expected, "{said:?}");
        }
    }
}
