//! How librdkafka's threads wake the one that reads.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A flag that can be waited for.
#[derive(Default)]
pub struct Wake {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl Wake {
    /// Something may have arrived.
    pub fn set(&self) {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Call it before looking: what arrives later sets the flag again.
    pub fn clear(&self) {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }

    /// Wait until the flag is set, at most for `patience`.
    pub fn wait(&self, patience: Duration) {
        let guard = self.is_set.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_timeout_while(guard, patience, |is_set| !*is_set));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Instant;

    #[test]
    fn a_flag_that_was_set_before_is_not_waited_for() {
        let wake = Wake::default();
        wake.set();
        let before = Instant::now();
        wake.wait(Duration::from_secs(5));
        assert!(before.elapsed() < Duration::from_secs(1));
    }

    #[test]
    fn another_thread_ends_the_wait_and_a_cleared_flag_does_not() {
        let wake = Arc::new(Wake::default());
        wake.set();
        wake.clear();
        wake.wait(Duration::from_millis(1));
        let other = Arc::clone(&wake);
        let thread = std::thread::spawn(move || other.set());
        let before = Instant::now();
        wake.wait(Duration::from_secs(5));
        assert!(before.elapsed() < Duration::from_secs(4));
        thread.join().expect("the thread ends");
    }
}
