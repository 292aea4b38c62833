//! Asking the terminal with each frame for the size at which it drew it.
//!
//! tmux changes its own grid some time before it tells the program. A frame for the old size may be drawn in between; what
//! it leaves is repaired when the answer tells so. tmux answers within a fraction of a millisecond.

use std::time::Duration;

use tokio::time::Instant;

use super::Size;

pub(super) const QUERY: &str = "\x1b[18t";
/// How long a frame waits for the answer.
const TIMEOUT: Duration = Duration::from_millis(100);

/// Whether the terminal has told at which size it drew the last frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SizeCheck {
    /// The terminal is not asked.
    Off,
    /// No answer is missing; `Answer` is the last one, if it is newer than what the system reports.
    Ready(Option<Answered>),
    /// The last frame ended with the question.
    Asked(Instant),
}

/// A size that the terminal told, and the one that the system reported then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answered {
    told: Size,
    reported: Size,
}

impl SizeCheck {
    /// True if the next frame must wait for the answer.
    pub(super) fn must_wait(self, now: Instant) -> bool {
        self.deadline().is_some_and(|deadline| now < deadline)
    }

    /// When a frame that waits for the answer is drawn without it.
    pub(super) fn deadline(self) -> Option<Instant> {
        match self {
            Self::Asked(at) => Some(at + TIMEOUT),
            Self::Off | Self::Ready(_) => None,
        }
    }

    /// The size for the next frame.
    pub(super) fn size(&mut self, order: Order, reported: Size) -> Size {
        match *self {
            Self::Ready(Some(answered)) if answered.reported == reported => answered.told,
            Self::Asked(_) => {
                // Only a terminal that answered before is asked again.
                *self = if order == Order::Unknown { Self::Off } else { Self::Ready(None) };
                reported
            }
            Self::Off | Self::Ready(_) => reported,
        }
    }

    /// Adds the question to a frame.
    pub(super) fn ask(&mut self, frame: &mut Vec<u8>, now: Instant) {
        if matches!(self, Self::Ready(_)) && !frame.is_empty() {
            frame.extend_from_slice(QUERY.as_bytes());
            *self = Self::Asked(now);
        }
    }

    /// Takes the numbers of an answer. Which of them is which is learned by `reported`, the size that the system reports.
    pub(super) fn answer(&mut self, order: &mut Order, numbers: (u16, u16), reported: Size) -> Size {
        let told = order.read(numbers, reported).unwrap_or(reported);
        if *self != Self::Off {
            *self = Self::Ready(Some(Answered { told, reported }));
        }
        told
    }
}

/// The order of the numbers in an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Order {
    #[default]
    Unknown,
    RowsFirst,
    ColumnsFirst,
}

impl Order {
    fn read(&mut self, (first, second): (u16, u16), known: Size) -> Option<Size> {
        let rows_first = Size { columns: second, rows: first };
        let columns_first = Size { columns: first, rows: second };
        if *self == Self::Unknown && first != second {
            *self = match known {
                _ if known == rows_first => Self::RowsFirst,
                _ if known == columns_first => Self::ColumnsFirst,
                _ => Self::Unknown,
            };
        }
        match self {
            Self::Unknown => (first == second).then_some(rows_first),
            Self::RowsFirst => Some(rows_first),
            Self::ColumnsFirst => Some(columns_first),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { columns: 80, rows: 24 };

    #[test]
    fn next_frame_waits_for_the_answer() {
        let now = Instant::now();
        let (mut check, mut frame) = (SizeCheck::Ready(None), b"x".to_vec());
        check.ask(&mut frame, now);
        assert_eq!(frame, b"x\x1b[18t");
        assert!(check.must_wait(now));
        check.answer(&mut Order::RowsFirst, (30, 60), SIZE);
        assert!(!check.must_wait(now));
        assert_eq!(check.size(Order::Unknown, SIZE), Size { columns: 60, rows: 30 });
        assert_eq!(
            check.size(Order::RowsFirst, Size { columns: 61, rows: 30 }),
            Size { columns: 61, rows: 30 }
        );
    }

    #[test]
    fn order_of_the_numbers_is_learned() {
        let other = Size { columns: 60, rows: 30 };
        for (first, second) in [((24, 80), (30, 60)), ((80, 24), (60, 30))] {
            let mut order = Order::default();
            assert_eq!(order.read(second, SIZE), None);
            assert_eq!(order.read(first, SIZE), Some(SIZE));
            assert_eq!(order.read(second, SIZE), Some(other));
        }
    }

    #[test]
    fn a_terminal_without_answers_is_not_asked_again() {
        let now = Instant::now();
        let (mut check, mut frame) = (SizeCheck::Ready(None), b"x".to_vec());
        check.ask(&mut frame, now);
        assert!(!check.must_wait(now + TIMEOUT));
        assert_eq!(check.size(Order::Unknown, SIZE), SIZE);
        assert_eq!(check, SizeCheck::Off);
    }
}
