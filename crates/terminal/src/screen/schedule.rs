//! When the next frame is due: at most 30 a second while something changes, none otherwise, and at once after a rest.

use std::time::Duration;

use tokio::time::Instant;

/// Text that streams reads as well as with more frames, for half the bytes. Keys do not wait for it.
const FRAME_INTERVAL: Duration = Duration::from_micros(33_333);
/// No frame is drawn until the size was stable for this long.
const RESIZE_PAUSE: Duration = Duration::from_millis(30);

#[derive(Debug, Default)]
pub(super) struct Schedule {
    is_requested: bool,
    last: Option<Instant>,
    resized: Option<Instant>,
}

impl Schedule {
    pub(super) fn request(&mut self) {
        self.is_requested = true;
    }

    /// Forgets how recent the last frame is: what a key changed is shown at once.
    pub(super) fn hurry(&mut self) {
        self.last = None;
    }

    pub(super) fn resized(&mut self, now: Instant) {
        self.resized = Some(now);
        self.is_requested = true;
    }

    pub(super) fn drawn(&mut self, now: Instant) {
        self.is_requested = false;
        self.last = Some(now);
        self.resized = None;
    }

    /// When to draw; none if nothing was requested.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        let after_frame = self.last.map_or(now, |last| last + FRAME_INTERVAL);
        let after_resize = self.resized.map_or(now, |resized| resized + RESIZE_PAUSE);
        self.is_requested.then(|| after_frame.max(after_resize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_is_due_only_when_requested() {
        let now = Instant::now();
        let mut schedule = Schedule::default();
        assert_eq!(schedule.due(now), None);
        schedule.request();
        assert_eq!(schedule.due(now), Some(now));
        schedule.drawn(now);
        assert_eq!(schedule.due(now), None);
    }

    #[test]
    fn frames_keep_their_distance_except_after_a_key() {
        let now = Instant::now();
        let mut schedule = Schedule::default();
        schedule.drawn(now);
        schedule.request();
        assert_eq!(schedule.due(now), Some(now + FRAME_INTERVAL));
        schedule.hurry();
        assert_eq!(schedule.due(now), Some(now));
    }

    #[test]
    fn resizes_delay_the_frame() {
        let now = Instant::now();
        let mut schedule = Schedule::default();
        schedule.resized(now);
        assert_eq!(schedule.due(now), Some(now + RESIZE_PAUSE));
        schedule.hurry();
        assert_eq!(schedule.due(now), Some(now + RESIZE_PAUSE));
    }
}
